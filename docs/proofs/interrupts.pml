/*
 * Interrupts, order, tokens and callbacks: nothing a customer asked for is dropped, and each mail gets one reply.
 *
 * One key, two workers, three mails. How a worker hears of work is proven in claims.pml; here it may claim the key
 * whenever that is free or over, and look for an interruption whenever it likes. README.md maps each step to its
 * function.
 */

#ifndef FAULTS
#define FAULTS 1            /* of any kind: crash, lease over while its owner lives, a step run again */
#endif
#ifndef MAX_INTERRUPTIONS
#define MAX_INTERRUPTIONS 2
#endif

#define JOBS 3
#ifdef THREE_THREADS
#define THREAD(j) (j)
#else
#define THREAD(j) ((j) / 2) /* mails 0 and 1 are of thread A, mail 2 of thread B */
#endif
#define NOBODY 255
#define NO_JOB 255
#define ANY_FENCE 255

mtype = { preparing, queued, running, settled };
mtype = { none, preempted, succeeded };            /* the answer to a task token */
mtype = { no_job, at_work, reading_debt, telling, noting };   /* a slot */

mtype job_state[JOBS] = preparing;
byte order[JOBS];                                  /* as ranks: only their order matters */
byte times[JOBS], job_fence[JOBS];
bit fresh[JOBS] = 1;                               /* never started */
byte token[JOBS], preempted_token[JOBS];           /* 0 is no token */
bit called_back[JOBS];

byte owner = NOBODY, fence;                        /* the claim of the one key */
bit over;                                          /* its owner died, or its beat stood still */

byte open_token[JOBS];                             /* the engine's side of a token */
mtype answer[JOBS] = none;
byte replies[JOBS];

byte faults = FAULTS;
hidden byte found, due_preempted, due_settled;

#define OPEN(j) (job_state[j] != settled)
#define STARTABLE(j, f) (job_state[j] == queued || (job_state[j] == running && job_fence[j] < (f)))
#define HOLDS_UP(e, j) ((e) < (j) && THREAD(e) == THREAD(j) && OPEN(e))
#ifdef NO_THREAD_ORDER
#define BLOCKED(j) false
#else
#define BLOCKED(j) (HOLDS_UP(0, j) || HOLDS_UP(1, j))
#endif
#define MAY_START(j, f) (STARTABLE(j, f) && !BLOCKED(j))
#define HAS_NEXT(f) (MAY_START(0, f) || MAY_START(1, f) || MAY_START(2, f))
#define INTERRUPTS(n, r) (THREAD(n) != THREAD(r) && fresh[n] && job_state[n] == queued && !BLOCKED(n))
#define MUST_YIELD(r) (times[r] < MAX_INTERRUPTIONS && (INTERRUPTS(0, r) || INTERRUPTS(1, r) || INTERRUPTS(2, r)))
/* Until somebody has claimed the key the workers are alike, so it may as well be worker 0 that does. */
#define MY_TURN (me == 0 || fence > 0)
#define STILL_MINE (owner == me && fence == my_fence)

/* ---- the store ------------------------------------------------------------------------------------------ */

inline find_next(f) {                              /* NEXT_JOB: the lowest order that may start */
  found = NO_JOB;
  if :: MAY_START(0, f) -> found = 0 :: else fi;
  if :: MAY_START(1, f) && (found == NO_JOB || order[1] < order[found]) -> found = 1 :: else fi;
  if :: MAY_START(2, f) && (found == NO_JOB || order[2] < order[found]) -> found = 2 :: else fi
}

inline start() {                                   /* START of `found`; the next job's hold is new */
  assert(OPEN(found) && !HOLDS_UP(0, found) && !HOLDS_UP(1, found));
                                                   /* property: order within a thread holds */
  job_state[found] = running; job_fence[found] = fence; fresh[found] = 0;
  job = found; my_fence = fence; asked = NO_JOB; slot = at_work
}

inline settle() {
  assert(job_state[job] == running && job_fence[job] == my_fence);
                                                   /* property: no settle under an old fence, none twice */
  job_state[job] = settled; job_fence[job] = 0; times[job] = 0
}

inline to_tail(j) { if :: order[j] > order[job] -> order[j]-- :: else fi }

inline interrupt() {                               /* INTERRUPT: to the tail, its token to be told */
  assert(asked == job);                            /* property: a late interrupt hits nothing */
  times[job]++;
  assert(times[job] <= MAX_INTERRUPTIONS);         /* property: interrupted a bounded number of times */
  to_tail(0); to_tail(1); to_tail(2);
  order[job] = JOBS - 1; job_state[job] = queued; job_fence[job] = 0;
#ifdef OWED_TOKEN_OVERWRITTEN
  preempted_token[job] = token[job];
#else
  preempted_token[job] = (token[job] != 0 -> token[job] : preempted_token[job]);
#endif
  token[job] = 0
}

inline go_on() {                                   /* the rest of end_and_take_next */
  paid_for = job; job = NO_JOB;
  find_next(my_fence);
  if
  :: found != NO_JOB -> start()
  :: else -> owner = NOBODY; over = 0              /* idle, and given up */
  fi;
  slot = reading_debt
}

/* ---- effects.pay: read, tell, note ------------------------------------------------------------------------ */

inline read_debt(j, to_preempt, to_settle) {
  to_preempt = preempted_token[j];
  to_settle = (job_state[j] == settled -> token[j] : 0)
}

inline tell(j, t, word) {                          /* the engine takes the first answer to an open token */
  if
  :: open_token[j] == t && answer[j] == none -> answer[j] = word
  :: else                                          /* lost: nobody waits under this token any more */
  fi
}

inline note_paid(j, t) {
  if :: token[j] == t -> called_back[j] = 1 :: else fi;
  if :: preempted_token[j] == t -> preempted_token[j] = 0 :: else fi
}

inline pay_at_once(j) {                            /* a payer that is never slow */
  read_debt(j, due_preempted, due_settled);
  if :: due_preempted != 0 -> tell(j, due_preempted, preempted); note_paid(j, due_preempted) :: else fi;
  if :: due_settled != 0 -> tell(j, due_settled, succeeded); note_paid(j, due_settled) :: else fi
}

inline done_paying() {
  paid_for = NO_JOB; slot = (job != NO_JOB -> at_work : no_job);
  if :: job == NO_JOB -> my_fence = 0 :: else fi
}

inline bind(j) {                                   /* bind_token; whoever comes second, token or ending, pays */
  token[j] = open_token[j]; called_back[j] = 0;
#ifndef BIND_DOES_NOT_PAY
  if :: job_state[j] == settled -> pay_at_once(j) :: else fi
#endif
}

/* ---- a worker -------------------------------------------------------------------------------------------- */

proctype worker(byte me) {
  byte job = NO_JOB, my_fence, asked = NO_JOB, paid_for = NO_JOB, told_preempted, told_settled;
  mtype slot = no_job;
end:
  do
  :: atomic { slot == no_job && MY_TURN && (owner == NOBODY || over) && HAS_NEXT(ANY_FENCE) ->
       owner = me; fence++; over = 0; find_next(fence); start() }
  :: atomic { slot == at_work && asked == NO_JOB && MUST_YIELD(job) -> asked = job }     /* Limits._look_at_queue */
#ifdef NO_LIMIT
  :: atomic { slot == at_work && asked == NO_JOB && STILL_MINE && times[job] == MAX_INTERRUPTIONS -> asked = job }
#endif
  :: atomic { slot == at_work ->                                                         /* the work is done */
       if
#ifndef NO_FENCE_AT_SETTLE
       :: !STILL_MINE -> job = NO_JOB; my_fence = 0; asked = NO_JOB; slot = no_job        /* ClaimLost */
       :: STILL_MINE -> settle(); go_on()
#else
       :: settle(); go_on()
#endif
       fi }
  :: atomic { slot == at_work && asked != NO_JOB ->                                      /* saved, then requeued */
       if
       :: !STILL_MINE -> job = NO_JOB; my_fence = 0; asked = NO_JOB; slot = no_job
       :: STILL_MINE -> interrupt(); go_on()
       fi }
  /* Slot._call_back: a payer that may sleep or die between any two calls */
  :: atomic { slot == reading_debt ->
       read_debt(paid_for, told_preempted, told_settled);
       if :: told_preempted != 0 || told_settled != 0 -> slot = telling :: else -> done_paying() fi }
  :: atomic { slot == telling ->
       if
       :: told_preempted != 0 -> tell(paid_for, told_preempted, preempted)
       :: else -> tell(paid_for, told_settled, succeeded)
       fi;
       slot = noting }
  :: atomic { slot == noting ->
       if
       :: told_preempted != 0 -> note_paid(paid_for, told_preempted); told_preempted = 0
       :: else -> note_paid(paid_for, told_settled); told_settled = 0
       fi;
       if :: told_settled != 0 -> slot = telling :: else -> done_paying() fi }
  :: atomic { slot == at_work && STILL_MINE && job_fence[job] == my_fence && token[job] != 0 &&
              !(open_token[job] == token[job] && answer[job] == none) ->
       assert(false) }                             /* property: a heartbeat never calls a wanted job unwanted */
  :: atomic { faults > 0 && slot != no_job ->      /* killed, and started anew */
       faults--;
       if :: owner == me -> over = 1 :: else fi;
       job = NO_JOB; my_fence = 0; asked = NO_JOB; paid_for = NO_JOB; told_preempted = 0; told_settled = 0;
       slot = no_job }
  od
}

/* ---- the workflow of one mail ----------------------------------------------------------------------------- */

proctype mail(byte j) {
  job_state[j] = queued;                           /* SendToContainer */
await:                                             /* AwaitResult: the engine opens a token, its handler binds it */
  atomic { open_token[j]++; answer[j] = none; bind(j) };
waiting:
  if
#ifdef BOUND_AGAIN
  :: atomic { answer[j] == none && faults > 0 -> faults-- };    /* the engine died before it had noted the handler's end */
     atomic { bind(j) }; goto waiting
#endif
  :: answer[j] == preempted ->
#ifdef PREEMPTED_ENDS
       skip
#else
       goto await                                  /* RecordInterruption, and SendToContainer, which changes nothing now */
#endif
  :: answer[j] == succeeded
  fi;
  atomic {
    replies[j]++;
    assert(replies[j] == 1 && job_state[j] == settled);  /* property: one reply per mail, once its job is settled */
    open_token[j] = 0; answer[j] = none
  }
}

/* ---- the reconciler's part, and the judge ------------------------------------------------------------------ */

#define OWED(j) (preempted_token[j] != 0 || job_state[j] == settled && !called_back[j] && token[j] != 0)

proctype reconciler() {
end:
  do
  :: atomic { OWED(0) -> pay_at_once(0) }
  :: atomic { OWED(1) -> pay_at_once(1) }
  :: atomic { OWED(2) -> pay_at_once(2) }
  od
}

proctype nature() {
end:
  do
  :: atomic { faults > 0 && owner != NOBODY && !over -> faults--; over = 1 }   /* its owner goes on all the same */
  od
}

proctype judge() {
  timeout -> assert(replies[0] == 1 && replies[1] == 1 && replies[2] == 1)
                                                   /* property: nothing is dropped, every mail is answered */
}

init {
  atomic {
    order[1] = 1; order[2] = 2;
    run worker(0); run worker(1);
    run mail(0); run mail(1); run mail(2);
#ifndef NO_RECONCILER
    run reconciler();
#endif
    run nature(); run judge()
  }
}
