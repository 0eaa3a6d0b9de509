/*
 * Claims: who works for whom, and why no wake-up is lost.
 *
 * Two keys, two workers of one slot each, up to two mails a key. Every option of `worker` is one atomic step of
 * the store or of the worker's memory; a worker's loop and its slot interleave freely. No step reads a clock: a
 * lease may run out at any moment that the budget allows, and whoever lost it goes on when it likes. So a hung
 * worker needs no step of its own. README.md maps each step to its function.
 *
 * Properties stand as comments beside the assertions; prove.py prints them from there.
 */

#ifndef MAILS_ON_KEY_0
#define MAILS_ON_KEY_0 2
#endif
#ifndef MAILS_ON_KEY_1
#define MAILS_ON_KEY_1 1
#endif
#ifndef FAULTS
#define FAULTS 1            /* of any kind, at any moment: crash, lease over, hint lost, hint late or
                               doubled, ticket lost, a store's answer lost */
#endif

#define WORKERS 2
#define KEYS 2
#define JOBS 4              /* job j belongs to key j / 2 and has order j */
#define NOBODY 255
#define NO_JOB 255
#define ANY_FENCE 255

mtype = { absent, queued, running, settled };      /* a job */
mtype = { free, held, releasing };                 /* a claim */
mtype = { not_mine, idle, busy };                  /* a key in a worker's memory */
mtype = { no_job, at_work, to_rest };               /* a slot */
mtype = { awake, to_begin, to_look, to_hint, to_end };  /* a worker's loop: awake, or in the middle of a release */

typedef Claim { mtype status = free; byte owner = NOBODY; byte fence; bit owner_died; bit lease_over };
typedef Memory {
  mtype of_key[KEYS] = not_mine; byte fence[KEYS]; bit news[KEYS]; bit watched[KEYS];
  mtype slot = no_job; byte slot_key; byte slot_fence; byte job = NO_JOB;
  mtype loop = awake; byte release_key; byte release_fence
};

mtype job_state[JOBS] = absent;
byte job_fence[JOBS];
Claim claim[KEYS];
bit hint[KEYS];
Memory mem[WORKERS];
bit gone[WORKERS];
byte faults = FAULTS;

#define OTHER(k) (1 - (k))
#define OPEN(j) (job_state[j] == queued || job_state[j] == running)
#define HAS_OPEN(k) (OPEN(2*(k)) || OPEN(2*(k) + 1))
#define STARTABLE(j, f) (job_state[j] == queued || (job_state[j] == running && job_fence[j] < (f)))
#define HAS_NEXT(k, f) (STARTABLE(2*(k), f) || STARTABLE(2*(k) + 1, f))
#define NEXT(k, f) (STARTABLE(2*(k), f) -> 2*(k) : 2*(k) + 1)
#define OVER(k) (claim[k].owner_died || claim[k].lease_over)
#define LIVE(k) (claim[k].status == held && !OVER(k))
#define ME mem[me]
#define STILL_MINE(k, f) (claim[k].status == held && claim[k].owner == me && claim[k].fence == (f) && !claim[k].owner_died)
#define LOOP_AWAKE (ME.loop == awake)
#define FREE_SLOT (ME.slot == no_job)
/* Until somebody has claimed something the workers are alike, so it may as well be worker 0 that does. */
#define MY_TURN (me == 0 || gone[0] || claim[0].fence > 0 || claim[1].fence > 0)

/* ---- the store's atomic steps -------------------------------------------------------------------------- */

inline start(k) {                                   /* START under the claim that `me` just got or has */
  ME.job = NEXT(k, claim[k].fence);
  assert(OPEN(ME.job));                             /* property: only an open job is started */
  job_state[ME.job] = running;
  job_fence[ME.job] = claim[k].fence;
  ME.of_key[k] = busy; ME.fence[k] = claim[k].fence; ME.news[k] = 0;
  ME.slot = at_work; ME.slot_key = k; ME.slot_fence = claim[k].fence
}

inline claim_and_start(k) {                         /* CLAIM, as far as its condition holds already */
  claim[k].fence++;
  assert(!(mem[0].of_key[k] != not_mine && mem[0].fence[k] == claim[k].fence) &&
         !(mem[1].of_key[k] != not_mine && mem[1].fence[k] == claim[k].fence));
                                                    /* property: one live owner and fence per key */
  claim[k].status = held; claim[k].owner = me; claim[k].owner_died = 0; claim[k].lease_over = 0;
  hint[k] = 0;
  start(k)
}

inline settle() {                                   /* SETTLE of the slot's job */
  assert(job_state[ME.job] == running && job_fence[ME.job] == ME.slot_fence);
                                                    /* property: no settle under an old fence, none twice */
  job_state[ME.job] = settled; job_fence[ME.job] = 0; ME.job = NO_JOB
}

inline set_free(k) { claim[k].status = free; claim[k].owner = NOBODY; claim[k].owner_died = 0; claim[k].lease_over = 0 }

inline leave_slot() { ME.slot = no_job; ME.slot_key = 0; ME.slot_fence = 0; ME.job = NO_JOB }

/* ---- the worker's loop --------------------------------------------------------------------------------- */

inline begin_to_release(k) {                        /* Worker._release: out of the holdings first */
  ME.of_key[k] = not_mine; ME.news[k] = 0;
  ME.release_key = k; ME.release_fence = ME.fence[k]; ME.fence[k] = 0; ME.loop = to_begin
}

inline give_up_coldest(k) {                         /* one slot: an idle claim goes when another key is served */
  if
  :: ME.of_key[OTHER(k)] == idle -> begin_to_release(OTHER(k))
  :: else
  fi
}

/* Who held it died, or its beat stood still. A claim of mine that I do not hold ends as a foreign one does. */
#ifdef OWN_CLAIM_IGNORED
#define MINE_IN_THE_WAY(k) (claim[k].owner == me && !claim[k].owner_died)
#else
#define MINE_IN_THE_WAY(k) (claim[k].owner == me && !claim[k].owner_died && ME.of_key[k] != not_mine)
#endif
#define CLAIMABLE(k) (claim[k].status != held || OVER(k) && !MINE_IN_THE_WAY(k))
#define LOOK_TELLS(k) (claim[k].status == free || !HAS_OPEN(k) || OVER(k) || MINE_IN_THE_WAY(k))

inline take_waiting(k) {                            /* Claiming._claim, and _meet for whoever is in the way */
  if
  :: !HAS_NEXT(k, ANY_FENCE) -> hint[k] = 0; ME.watched[k] = 0
  :: HAS_NEXT(k, ANY_FENCE) && CLAIMABLE(k) -> ME.watched[k] = 0; claim_and_start(k); give_up_coldest(k)
  :: HAS_NEXT(k, ANY_FENCE) && !CLAIMABLE(k) && MINE_IN_THE_WAY(k) ->
       hint[k] = 0; ME.watched[k] = 0; ME.news[k] = (ME.of_key[k] == idle)
  :: else -> ME.watched[k] = 1                      /* foreign and live: keep the hint and watch */
  fi
}

inline serve_held(k) {                              /* Worker._serve_next: start_next, or ClaimLost */
  ME.news[k] = 0;
  if
  :: !STILL_MINE(k, ME.fence[k]) -> ME.of_key[k] = not_mine; ME.fence[k] = 0
  :: STILL_MINE(k, ME.fence[k]) && HAS_NEXT(k, ME.fence[k]) -> start(k)
  :: STILL_MINE(k, ME.fence[k]) && HAS_NEXT(k, ME.fence[k]) && faults > 0 ->   /* started, but the answer is lost */
       faults--; start(k); leave_slot(); begin_to_release(k)
  :: else
  fi
}

/* A key in my own holdings is left out: its lease is renewed by my keeper. Fewer hints, never more. */
#define WANTS_HINT(k) (HAS_OPEN(k) && !hint[k] && !LIVE(k) && ME.of_key[k] == not_mine)
#define WANTS_NEWS(k) (ME.of_key[k] == idle && HAS_OPEN(k) && !ME.news[k])

inline reconcile(k) {                               /* Holdings.tell_all and Reconciler._hint */
  if :: WANTS_NEWS(k) -> ME.news[k] = 1 :: else fi;
  if :: WANTS_HINT(k) -> hint[k] = 1 :: else fi
}

inline woken() { ME.loop = awake; ME.release_key = 0; ME.release_fence = 0 }

inline release_step() {                             /* pool.release, one store call at a time */
  if
  :: ME.loop == to_begin && STILL_MINE(ME.release_key, ME.release_fence) ->
#ifdef NO_SECOND_LOOK
       set_free(ME.release_key); woken()
#else
       claim[ME.release_key].status = releasing; ME.loop = to_look
#endif
  :: ME.loop == to_look -> ME.loop = (HAS_OPEN(ME.release_key) -> to_hint : to_end)
  :: ME.loop == to_hint -> hint[ME.release_key] = 1; ME.loop = to_end
  :: (ME.loop == to_end && claim[ME.release_key].status == releasing &&
      claim[ME.release_key].owner == me && claim[ME.release_key].fence == ME.release_fence) -> set_free(ME.release_key); woken()
  :: else -> woken()                                /* somebody took it meanwhile */
  fi
}

/* ---- the slot ------------------------------------------------------------------------------------------ */

inline drop_slot_key() {                            /* Holdings.drop: a newer claim of the same key stays */
  if
  :: ME.fence[ME.slot_key] == ME.slot_fence -> ME.of_key[ME.slot_key] = not_mine; ME.fence[ME.slot_key] = 0
  :: else
  fi
}

#define WAITS(k) (hint[k] && HAS_NEXT(k, ANY_FENCE) && claim[k].status != held)

inline end_and_take_next(k) {                       /* one transaction: settle, then start, yield or rest */
  if
#ifndef NO_FENCE_AT_SETTLE
  :: !STILL_MINE(k, ME.slot_fence) -> drop_slot_key(); leave_slot()          /* ClaimLost: stand down */
  :: STILL_MINE(k, ME.slot_fence) ->
#else
  :: true ->
#endif
       settle();
       if
       :: !HAS_NEXT(k, ME.slot_fence) -> ME.slot = to_rest
       :: !HAS_OPEN(k) && WAITS(OTHER(k)) ->        /* idle, and another key waits */
            drop_slot_key(); set_free(k); claim_and_start(OTHER(k))
       :: HAS_NEXT(k, ME.slot_fence) -> start(k)
       :: HAS_NEXT(k, ME.slot_fence) && WAITS(OTHER(k)) ->   /* another key has waited longer: any, here */
            drop_slot_key(); set_free(k); hint[k] = 1; claim_and_start(OTHER(k))
       fi
  fi
}

inline rest(k) {                                    /* Holdings.rest, with one more look to come */
  ME.of_key[k] = idle; ME.fence[k] = ME.slot_fence; ME.news[k] = 1; leave_slot()
}

/* ---- faults -------------------------------------------------------------------------------------------- */

inline forget(k) {
  if
  :: claim[k].owner == me && claim[k].status != free -> claim[k].owner_died = 1
  :: else
  fi;
  ME.of_key[k] = not_mine; ME.fence[k] = 0; ME.news[k] = 0; ME.watched[k] = 0
}

inline crash() {                                    /* a restarted worker has a new name: nothing is its own */
  forget(0); forget(1); leave_slot(); woken()
}

proctype worker(byte me) {
end:
  do
  :: atomic { LOOP_AWAKE && FREE_SLOT && MY_TURN && hint[0] && !ME.watched[0] -> take_waiting(0) }
  :: atomic { LOOP_AWAKE && FREE_SLOT && MY_TURN && hint[1] && !ME.watched[1] -> take_waiting(1) }
  :: atomic { LOOP_AWAKE && FREE_SLOT && ME.watched[0] && LOOK_TELLS(0) -> take_waiting(0) }
  :: atomic { LOOP_AWAKE && FREE_SLOT && ME.watched[1] && LOOK_TELLS(1) -> take_waiting(1) }
  :: atomic { LOOP_AWAKE && FREE_SLOT && ME.of_key[0] == idle && ME.news[0] -> serve_held(0) }
  :: atomic { LOOP_AWAKE && FREE_SLOT && ME.of_key[1] == idle && ME.news[1] -> serve_held(1) }
  :: atomic { LOOP_AWAKE && ME.of_key[0] == idle -> begin_to_release(0) }     /* idle for long */
  :: atomic { LOOP_AWAKE && ME.of_key[1] == idle -> begin_to_release(1) }
  :: atomic { ME.loop != awake -> release_step() }
#ifndef NO_RECONCILER
  :: atomic { LOOP_AWAKE && (WANTS_HINT(0) || WANTS_HINT(1) || WANTS_NEWS(0) || WANTS_NEWS(1)) ->
       reconcile(0); reconcile(1) }
#endif
  :: atomic { ME.slot == at_work && ME.slot_key == 0 -> end_and_take_next(0) }
  :: atomic { ME.slot == at_work && ME.slot_key == 1 -> end_and_take_next(1) }
  :: atomic { ME.slot == to_rest -> rest(ME.slot_key) }
  /* the keeper: renews in time after all, or the job sees first that its trust has run out */
  :: atomic { ME.of_key[0] != not_mine && claim[0].lease_over && STILL_MINE(0, ME.fence[0]) -> claim[0].lease_over = 0 }
  :: atomic { ME.of_key[1] != not_mine && claim[1].lease_over && STILL_MINE(1, ME.fence[1]) -> claim[1].lease_over = 0 }
  :: atomic { ME.slot != no_job && claim[ME.slot_key].lease_over -> drop_slot_key(); leave_slot() }
  :: atomic { ME.of_key[0] == idle && claim[0].lease_over -> ME.of_key[0] = not_mine; ME.fence[0] = 0; ME.news[0] = 0 }
  :: atomic { ME.of_key[1] == idle && claim[1].lease_over -> ME.of_key[1] = not_mine; ME.fence[1] = 0; ME.news[1] = 0 }
  /* killed: started again, or for good while the other one lives */
  :: atomic { faults > 0 -> faults--; crash();
       if :: true :: !gone[1 - me] -> gone[me] = 1; break fi }
  od
}

/* ---- the workflow of one mail --------------------------------------------------------------------------- */

inline enqueue() { job_state[mine] = queued }

inline ticket(k) {                                  /* reaches the owner's memory, or is lost */
  if
  :: claim[k].status != free && !claim[k].owner_died && !gone[claim[k].owner] ->
       if
       :: mem[claim[k].owner].of_key[k] == idle -> mem[claim[k].owner].news[k] = 1
       :: mem[claim[k].owner].of_key[k] == idle && faults > 0 -> faults--
       :: else
       fi
  :: else
  fi
}

inline request_claim(k) {                           /* CheckIfClaimed? and SendClaimRequest */
  if
  :: owned
  :: !owned ->
#ifdef WORKFLOW_CLAIMS
       claim[k].status = held; claim[k].owner = 0; claim[k].fence++; claim[k].owner_died = 0; claim[k].lease_over = 0;
       ticket(k)
#else
       hint[k] = 1
#endif
  fi;
  owned = 0
}

proctype mail(byte mine; byte k) {
  bit owned;
#ifdef LOOK_BEFORE_ENQUEUE
  owned = LIVE(k);
  atomic { enqueue(); ticket(k) };
#else
  enqueue();
  atomic { ticket(k) };
  owned = LIVE(k);
#endif
  atomic { request_claim(k) }
}

/* ---- nature, and the judge ------------------------------------------------------------------------------ */

proctype nature() {
end:
  do
  :: atomic { faults > 0 && claim[0].status == held && !OVER(0) -> faults--; claim[0].lease_over = 1 }
  :: atomic { faults > 0 && claim[1].status == held && !OVER(1) -> faults--; claim[1].lease_over = 1 }
  :: atomic { faults > 0 && hint[0] -> faults--; hint[0] = 0 }
  :: atomic { faults > 0 && hint[1] -> faults--; hint[1] = 0 }
  :: atomic { faults > 0 && !hint[0] -> faults--; hint[0] = 1 }
  :: atomic { faults > 0 && !hint[1] -> faults--; hint[1] = 1 }
  od
}

#define DONE(j) (job_state[j] == absent || job_state[j] == settled)

proctype judge() {
  timeout -> assert(DONE(0) && DONE(1) && DONE(2) && DONE(3))   /* property: no lost wake-up, every job is settled */
}

init {
  atomic {
    run worker(0); run worker(1);
    run mail(0, 0);
#if MAILS_ON_KEY_0 > 1
    run mail(1, 0);
#endif
#if MAILS_ON_KEY_1 > 0
    run mail(2, 1);
#endif
#if MAILS_ON_KEY_1 > 1
    run mail(3, 1);
#endif
    run nature();
    run judge()
  }
}
