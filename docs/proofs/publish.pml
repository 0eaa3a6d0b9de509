/*
 * Publishing: two users of one project are two keys, and whoever slept too long publishes nothing.
 *
 * Two keys, two workers, one mail a key, one project: its lease, its origin (main and the fence marks, moved by one
 * atomic push) and its release pointers. A job may also end without publishing (the agent did not understand, the
 * build failed) or be refused at its start (cancelled, too many attempts). How work is found is proven in
 * claims.pml; here a worker claims whenever it may. README.md maps each step to its function.
 */

#ifndef FAULTS
#define FAULTS 2            /* of any kind: crash, lease over while its owner lives */
#endif

#define KEYS 2              /* job k is the one mail of key k */
#define NOBODY 255
#define BIT(k) (1 << (k))

mtype = { queued, running, settled };
mtype = { no_job, checking_out, instructed, leasing, entering, building, checking, pushing, pointing, unleasing,
          succeeding, failing };                   /* where a worker stands with its job */

mtype job_state[KEYS] = queued;
byte job_fence[KEYS];
bit published[KEYS];                               /* what the settled record says */

byte owner[KEYS] = NOBODY, fence[KEYS];            /* claims */
bit over[KEYS];

byte lease_fence, lease_key;                       /* the project's lease */
bit leased;
byte lease_job_fence, lease_owner = NOBODY;

byte main_line;                                    /* the origin: a set of jobs whose commit is on main */
byte key_mark[KEYS], project_mark;                 /* the highest fence that has spoken */

byte pointer_fence, shown;                         /* the highest pointer, and the jobs that visitors see */

byte faults = FAULTS;

#define STARTABLE(k, f) (job_state[k] == queued || (job_state[k] == running && job_fence[k] < (f)))
/* Until somebody has claimed a key the workers are alike, so it may as well be worker 0 that does. */
#define MY_TURN (me == 0 || fence[0] > 0 || fence[1] > 0)
#define STILL_MINE (owner[k] == me && fence[k] == my_fence)

inline leave() {
  at = no_job; k = 0; my_fence = 0; my_lease = 0; seen_main = 0; built = 0
}

inline give_back() {                               /* ProjectLeases.release: nothing if a newer lease exists */
  if :: my_lease != 0 && lease_fence == my_lease -> leased = 0 :: else fi
}

inline stand_down() {                              /* ClaimLost: `leased` still gives its lease back */
  give_back(); leave()
}

inline settle(with_change) {
  assert(job_state[k] == running && job_fence[k] == my_fence);   /* property: no settle under an old fence, none twice */
  job_state[k] = settled; job_fence[k] = 0; published[k] = (with_change);
  assert((with_change) == ((main_line & BIT(k)) != 0));            /* property: the record says what main holds */
  assert(!(with_change) || (shown & BIT(k)) != 0);                 /* property: a settled change is shown */
  owner[k] = NOBODY; over[k] = 0
}

inline begin(n) {                                  /* claim_and_start, over a dead or silent owner or a free key */
  k = n; owner[n] = me; fence[n]++; over[n] = 0; my_fence = fence[n];
  job_state[n] = running; job_fence[n] = my_fence;
  at = checking_out
}

proctype worker(byte me) {
  byte k, my_fence, my_lease, seen_main, built;
  mtype at = no_job;
end:
  do
  :: atomic { at == no_job && MY_TURN && (owner[0] == NOBODY || over[0]) && STARTABLE(0, 255) -> begin(0) }
  :: atomic { at == no_job && MY_TURN && (owner[1] == NOBODY || over[1]) && STARTABLE(1, 255) -> begin(1) }

  /* refused at its start: a job that was started before may have left a sleeper behind */
#ifdef REFUSAL_IS_SILENT
  :: atomic { at == checking_out -> at = failing; built = 0 }
#endif

  /* GitRepository.prepare: the key's mark is moved before reading; a commit of this job on main is seen */
  :: atomic { at == checking_out ->
       if
       :: my_fence < key_mark[k] -> stand_down()
       :: else -> key_mark[k] = my_fence; seen_main = main_line; at = instructed
       fi }
  :: atomic { at == instructed ->
       if
       :: at = leasing
       :: (main_line & BIT(k)) == 0 -> at = failing   /* not understood, or nothing to change */
       fi }

  /* ProjectLeases.take: free, its holder dead, or its job not running under that fence any more */
  :: atomic { at == leasing && (!leased || lease_owner == NOBODY ||
              !(job_state[lease_key] == running && job_fence[lease_key] == lease_job_fence)) ->
       leased = 1; lease_fence++; lease_key = k; lease_job_fence = my_fence; lease_owner = me;
       my_lease = lease_fence; at = entering }

  /* MainLine.enter: a quick job goes on with what it read; another moves both marks in one push, then reads, or reads */
  :: atomic { at == entering ->
       if
       :: at = building
       :: seen_main = main_line; at = building
       :: my_fence < key_mark[k] || my_lease < project_mark -> stand_down()
       :: else -> key_mark[k] = my_fence; project_mark = my_lease; seen_main = main_line; at = building
       fi }
  :: atomic { at == building ->                    /* join and build */
       if
       :: built = seen_main | BIT(k); at = checking
       :: (seen_main & BIT(k)) == 0 -> give_back(); my_lease = 0; at = failing    /* conflict, or the build failed */
       fi }
  :: atomic { at == checking ->                    /* leases.check; a stale worker may fall asleep right after */
       if
#ifndef NO_PUSH_OF_WHAT_IS_ON_MAIN
       :: leased && lease_fence == my_lease -> at = pushing
#else
       :: leased && lease_fence == my_lease -> at = ((seen_main & BIT(k)) != 0 -> pointing : pushing)
#endif
       :: else -> stand_down()
       fi }

  /* MainLine.push: main under both fences, all or nothing; of what is on main already the fences alone */
  :: atomic { at == pushing ->
       if
#ifndef NO_FENCE_AT_PUSH
       :: my_fence < key_mark[k] || my_lease < project_mark -> stand_down()
       :: my_fence >= key_mark[k] && my_lease >= project_mark && main_line != seen_main ->
            seen_main = main_line; at = entering
       :: my_fence >= key_mark[k] && my_lease >= project_mark && main_line == seen_main ->
#else
       :: main_line != seen_main -> seen_main = main_line; at = entering
       :: main_line == seen_main ->
#endif
            assert(job_state[k] != settled);       /* property: nothing is published for a job that is settled */
            assert((main_line & ~built) == 0);     /* property: main loses no change */
            assert((seen_main & BIT(k)) != 0 || (main_line & BIT(k)) == 0);
                                                   /* property: a job's commit is on main once */
            assert(my_fence >= key_mark[k] && my_lease >= project_mark);
                                                   /* property: no effect under an old fence */
            key_mark[k] = my_fence; project_mark = my_lease; main_line = built; at = pointing
       fi }

  /* Releases.point: the highest fence is what visitors see */
  :: atomic { at == pointing ->
       if
#ifndef NO_FENCE_AT_POINTER
       :: my_lease < pointer_fence
       :: else ->
#else
       :: true ->
#endif
            assert((shown & ~built) == 0);         /* property: what visitors see never goes back */
            pointer_fence = my_lease; shown = built
       fi;
       at = unleasing }
  :: atomic { at == unleasing -> give_back(); my_lease = 0; at = succeeding }

  /* end_and_take_next */
  :: atomic { at == succeeding || at == failing ->
       if
#ifndef NO_FENCE_AT_SETTLE
       :: !STILL_MINE -> leave()
       :: STILL_MINE ->
#else
       :: true ->
#endif
            settle(at == succeeding); leave()
       fi }
  :: atomic { faults > 0 && at != no_job ->        /* killed, and started anew under a new name */
       faults--;
       if :: owner[k] == me && fence[k] == my_fence -> over[k] = 1 :: else fi;
       if :: lease_owner == me && my_lease == lease_fence -> lease_owner = NOBODY :: else fi;
       leave() }
  od
}

proctype nature() {
end:
  do
  :: atomic { faults > 0 && owner[0] != NOBODY && !over[0] -> faults--; over[0] = 1 }
  :: atomic { faults > 0 && owner[1] != NOBODY && !over[1] -> faults--; over[1] = 1 }
  od
}

proctype judge() {
  timeout -> assert(job_state[0] == settled && job_state[1] == settled);   /* property: every job is settled */
  assert(shown == main_line)                       /* property: in the end visitors see what main holds */
}

init { atomic { run worker(0); run worker(1); run nature(); run judge() } }
