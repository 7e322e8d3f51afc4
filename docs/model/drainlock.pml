/*
 * The protocol by which the drains of nodes lock the disruption budgets of the
 * pods that stay (docs/design/0008-locks.md). README.md says what is modelled,
 * what is left out, and what each BREAK_ leaves undone.
 *
 * A drain d is its node, a budget b its application: one pod of b stays on d if
 * d needs b. Sets of budgets are bits. Every budget allows one pod to be down.
 */
#ifdef RING             /* three drains and budgets; each drain shares one with each other */
#define ND 3
#define NB 3
#define NEEDS0 3
#define NEEDS1 6
#define NEEDS2 5
#endif
#ifndef ND
#define ND 2            /* drains, 2 or 3 */
#endif
#ifndef NB
#define NB 2            /* budgets, 2 or 3 */
#endif
#ifndef TROUBLE
#define TROUBLE 2       /* how often something goes wrong; see trouble */
#endif
#ifndef NEEDS0
#define NEEDS0 3        /* the budgets that node 0 needs, as bits */
#endif
#ifndef NEEDS1
#define NEEDS1 3
#endif
#ifndef NEEDS2
#define NEEDS2 3
#endif
#ifndef LATE0
#define LATE0 0         /* those of them that begin to protect its pods only later */
#endif
#ifndef LATE1
#define LATE1 0
#endif
#ifdef LIMIT_WRITE
#define NM (ND + 1)     /* and one more for node 0: its writes may land at any time */
#else
#define NM ND
#endif

#define BIT(b) (1 << (b))
#define LOWEST(s)  ((s) & 1 -> 0 : ((s) & 2 -> 1 : 2))
#define HIGHEST(s) ((s) & 4 -> 2 : ((s) & 2 -> 1 : 0))
#define OWNER 9         /* the owner of an application, who holds a lock */
#define OWNS(d) ((d) + 1)
#define FOREIGN 9       /* an eviction by others, of a pod that is on none of the nodes */

/* ---- What is in the API. Everything that a decision goes by is here. ---- */
byte lock[NB];          /* the annotation: 0 nobody, OWNS(d), OWNER */
byte mutex;             /* the Lease: 0 nobody, OWNS(d) */
bit  late_mutex;        /* its time is over */
mtype = { open, complete, gone };
mtype record[ND] = open;
byte sure[ND];          /* status.locks whose confirmedTime is set */
byte given[ND];         /* status.givenUp */
bit  evicts[ND];        /* spec.inPlace.onLockTimeout: Evict; else Wait */
byte unborn[ND];        /* budgets that do not protect the pods of the node yet */
byte on[ND];            /* pods on the node */
byte seen[ND];          /* those that the API shows as ready */
byte away[NB];          /* pods that were evicted and are not replaced yet */
bit  booted[ND];        /* the Node shows a new boot ID */
byte prints[ND];        /* pods whose containers are others than in status.pods */
mtype = { none, same, other };
mtype boot[ND] = none;  /* status.bootID: nothing promised yet; the Node's when it was; another one since */
byte fresh[ND];         /* status.pods[].fresh */
bit  returned[ND];      /* status.returnedTime */
bit  passed[ND];        /* expectedDowntimeSeconds since Complete */
byte place[ND];         /* the order of status.waitStartTime */
bit  yielded[ND];       /* 60 s since status.yieldStartTime */
mtype = { unmarked, asked, kept };
mtype mark[ND] = unmarked; /* the promise on the Node: by this record, which has told nobody; or the node may have been told */

/* ---- The world ---- */
mtype = { up, told, down, back };
mtype node[ND] = up;    /* told: who asked for the maintenance has read Drained=True */
byte ready[ND];         /* pods on the node that are ready indeed */
byte stale[ND];         /* those that the API shows as they were before the reboot */
byte flight[NB];        /* an admitted eviction that has not landed: FOREIGN, or OWNS(d) by us */
byte trouble = TROUBLE; /* crashes, owners' locks, evictions, ends of the mutex's time, ... still to come */

#ifdef ENDLESS
#define COST 0
#else
#define COST 1
#endif
#define HOLDS(what, name) \
	if :: what -> skip :: else -> printf(name); assert(false) fi
#ifdef PROMPT           /* the kubelet reports everything at once */
#define REPORT(d) seen[d] = ready[d]; prints[d] = prints[d] | stale[d]; stale[d] = 0; booted[d] = (node[d] == back)
#else
#define REPORT(d) skip
#endif
#define CRASH printf("node %d: crashes before a write\n", d); trouble = trouble - COST

/* ---- Reconciliations: changed is what others wrote since one has read it. ---- */
bit  busy[NM];
byte changed[NM];
#define MUTEX     BIT(NB)
#define RECORD(d) BIT(NB + 1 + (d))
#define NODE(m)   ((m) == ND -> 0 : (m))
#define NOBODY    99

#define STALE(what) (changed[m] & (what))
#ifdef BREAK_VERSION
#define OLD(b) 0
#else
#define OLD(b) STALE(BIT(b))
#endif

#define TELL(k, what, by) changed[k] = changed[k] | (busy[k] && (k) != (by) -> (what) : 0)
#if NM == 2
#define WROTE(what, by) TELL(0, what, by); TELL(1, what, by)
#else
#define WROTE(what, by) TELL(0, what, by); TELL(1, what, by); TELL(2, what, by)
#endif

#if NB == 2
#define EACH(P, d) (P(d,0) | P(d,1) << 1)
#define FORALL(P) (P(0) && P(1))
#else
#define EACH(P, d) (P(d,0) | P(d,1) << 1 | P(d,2) << 2)
#define FORALL(P) (P(0) && P(1) && P(2))
#endif
#if ND == 2
#define SUM(P, b) (P(0,b) + P(1,b))
#define FORDRAINS(P) (P(0) && P(1))
#else
#define SUM(P, b) (P(0,b) + P(1,b) + P(2,b))
#define FORDRAINS(P) (P(0) && P(1) && P(2))
#endif

/* Pods of b that are down: indeed, and as the status of the budget has it. */
#define DEAD(d, b) ((on[d] & ~ready[d]) >> (b) & 1)
#define OUT(d, b)  ((on[d] & ~seen[d]) >> (b) & 1)
#define REALLYDOWN(b) (away[b] + SUM(DEAD, b))
#define SHOWNDOWN(b)  (away[b] + SUM(OUT, b))
#define WITHINBUDGET(b) (REALLYDOWN(b) <= 1)

#define MINE1(d, b)   (lock[b] == OWNS(d))
#define OTHERS1(d, b) (lock[b] != 0 && lock[b] != OWNS(d))
#define FULL1(d, b)   (SHOWNDOWN(b) > 0)
#define FLIGHT1(d, b) (flight[b] != 0)
#define MINE(d)   EACH(MINE1, d)
#define OTHERS(d) EACH(OTHERS1, d)
#define FULL(d)   EACH(FULL1, d)
#define FLIGHT(d) EACH(FLIGHT1, d)

/* spec.budgets, and pods that have to leave after all because of a lock timeout. */
#define NEED(d)    (on[d] & ~given[d] & ~unborn[d])
#define LEAVING(d) (on[d] & given[d])

/* Confirmed locks that are still there. They stay, as the node may be on its way.
 * RETURN_SURE gives them back while it is not, so that others can go on. */
#ifdef RETURN_SURE
#define KEPT(d) (sure[d] & MINE(d) & (LEAVING(d) && node[d] == up -> 0 : 255))
#define BACK(d) (KEPT(d) && node[d] == up)
#else
#define KEPT(d) (sure[d] & MINE(d))
#define BACK(d) 0
#endif

#define MISSING(d) (NEED(d) & ~MINE(d))
#define UNSURE(d)  (NEED(d) & ~KEPT(d))
/* Budgets that have a pod on another node which bears a promise. */
#ifdef BREAK_MARK
#define ELSEWHERE(d) 0
#define PLEDGED(d) 0
#else
#define MARKED(e, d) ((e) != (d) && mark[e] != unmarked -> on[e] & ~unborn[e] : 0)
#define KEEPS(e, d) ((e) != (d) && mark[e] == kept -> on[e] & ~unborn[e] : 0)
#if ND == 2
#define ELSEWHERE(d) (MARKED(0, d) | MARKED(1, d))
#define PLEDGED(d) (KEEPS(0, d) | KEEPS(1, d))
#else
#define ELSEWHERE(d) (MARKED(0, d) | MARKED(1, d) | MARKED(2, d))
#define PLEDGED(d) (KEEPS(0, d) | KEEPS(1, d) | KEEPS(2, d))
#endif
#endif
/* A budget that cannot be had: somebody else's, or it does not allow a ready pod to go. */
#define OBSTACLES(d) (UNSURE(d) & (OTHERS(d) | ELSEWHERE(d) | (FULL(d) & seen[d])))
#ifdef BREAK_HOLD
#define STOPPED(d) (OBSTACLES(d) != 0)
#else
#define STOPPED(d) (OBSTACLES(d) != 0 || LEAVING(d) != 0)
#endif

/* Pods whose readiness is believed. */
#if defined(BREAK_SETTLE)
#define SETTLED(d) 0
#elif defined(LIMIT_SETTLE)
#define SETTLED(d) 255
#else
#define SETTLED(d) (stale[d] == 0 -> 255 : 0)
#endif
#define SINCE(d) (boot[d] == other -> fresh[d] | SETTLED(d) : 0)
#ifdef BREAK_BOOT
#define BELIEVED(d) 255
#else
#define BELIEVED(d) (boot[d] == none || (boot[d] == same && passed[d]) -> 255 : SINCE(d))
#endif

/* Locks to be given free. */
#ifdef BREAK_RELEASE
#define OVER(d) MINE(d)
#else
#define OVER(d) (MINE(d) & (~on[d] | (seen[d] & BELIEVED(d)) | (returned[d] -> 255 : 0)))
#endif
#ifdef BREAK_GIVEBACK
#define SPARE(d) 0
#else
#define SPARE(d) (MINE(d) & ~(KEPT(d) & NEED(d)) & (STOPPED(d) -> 255 : ~NEED(d)))
#endif
#define RELEASE(d) (record[d] == complete -> OVER(d) : (record[d] == open -> (returned[d] -> MINE(d) : SPARE(d)) : 0))
#define OPEN(d) (record[d] == open && !returned[d])

/* What the API shows of the node and its pods, and the status does not yet. */
#define LOOKS(d) (boot[d] != none && record[d] != gone && !returned[d] && (prints[d] != 0 || (booted[d] && boot[d] == same)))
#ifdef BREAK_RETURN
#define RETURNS(d) 0
#else
#define RETURNS(d) (OPEN(d) && boot[d] == other && (NEED(d) & ~(seen[d] & SINCE(d))) == 0)
#endif

#ifdef BREAK_BACKWARDS
#define LAST(s) LOWEST(s)
#else
#define LAST(s) HIGHEST(s)
#endif

#define HASMUTEX(d) (mutex == OWNS(d))
#define MUTEXFREE   (mutex == 0 || late_mutex || record[mutex-1] != open)
#define ABLE(d)     (OPEN(d) && RELEASE(d) == 0 && !STOPPED(d) && MISSING(d) != 0)
#ifdef BREAK_QUEUE
#define YIELDS(d)   0
#else
#define BEFORE(e, d) ((e) != (d) && place[e] < place[d] && (NEED(e) & NEED(d)) != 0 && ABLE(e))
#if ND == 2
#define YIELDS(d)   (KEPT(d) == 0 && !yielded[d] && (BEFORE(0, d) || BEFORE(1, d)))
#else
#define YIELDS(d)   (KEPT(d) == 0 && !yielded[d] && (BEFORE(0, d) || BEFORE(1, d) || BEFORE(2, d)))
#endif
#endif
#define BARRED(e) EACH(BARRED1, e)
#define BARRED1(e, b) ((lock[b] != 0 && lock[b] != OWNS(e)) || SHOWNDOWN(b) > 0)
#define JUMPED(e, d) ((e) != (d) && place[e] < place[d] && OPEN(e) && LEAVING(e) == 0 && (NEED(e) & NEED(d)) != 0 && (NEED(e) & (BARRED(e) | PLEDGED(e) | MINE(e))) == 0)
#if defined(BREAK_MUTEX)
#define JUMPS(d) 0
#elif ND == 2
#define JUMPS(d) (MINE(d) == 0 && (JUMPED(0, d) || JUMPED(1, d)))
#else
#define JUMPS(d) (MINE(d) == 0 && (JUMPED(0, d) || JUMPED(1, d) || JUMPED(2, d)))
#endif
#define WANTS(d)    (ABLE(d) && !YIELDS(d))
#ifdef BREAK_ORDER
#define FIRST(d) ((d) & 1 -> HIGHEST(MISSING(d)) : LOWEST(MISSING(d)))
#else
#define FIRST(d) LOWEST(MISSING(d))
#endif
#ifdef BREAK_MUTEX
#define MAYTAKE(d)  0
#define MAYWRITE(d) (WANTS(d))
#else
#define MAYTAKE(d)  (WANTS(d) && MUTEXFREE)
/* The mutex is held by a node that asks for none of the same budgets. */
#define BESIDE(d)   (!MUTEXFREE && (NEED(mutex-1) & NEED(d)) == 0)
#define MAYWRITE(d) (WANTS(d) && (HASMUTEX(d) && !late_mutex || BESIDE(d)))
#endif

/* A lock is sure if everything that was admitted before it has landed, and its
 * budget still allows what is needed. */
#ifdef BREAK_CONFIRM
#define CERTAIN(d) 1
#else
#define CERTAIN(d) ((FLIGHT(d) & UNSURE(d)) == 0 && !STOPPED(d))
#endif
#define READY(d) (OPEN(d) && RELEASE(d) == 0 && !HASMUTEX(d) && MISSING(d) == 0)
#define CONFIRMS(d) (READY(d) && UNSURE(d) != 0 && mark[d] != unmarked && CERTAIN(d))
/* A node that needs no lock, as its pods have left, is promised as well: its reboot is followed. */
#define PROMISED(d) (READY(d) && UNSURE(d) == 0 && mark[d] == asked && !STOPPED(d))
/* The promise is written when all locks are there, and goes from a node that was not told, is
 * back, or is known to be since its maintenance was over. */
#define ASKS(d) (READY(d) && mark[d] == unmarked && !STOPPED(d))
#define UNASKS(d) ((mark[d] == asked && OPEN(d) && (STOPPED(d) || MISSING(d) != 0)) || (mark[d] != unmarked && (returned[d] \
	|| (record[d] == complete && (mark[d] == asked || (on[d] & ~BELIEVED(d)) == 0)))))
/* The lock timeout: Evict gives up what cannot be had although nobody has locked it.
 * Others have their turn, and no pod could leave under the lock of an owner. */
#ifdef BREAK_TURN
#define GIVABLE(d) OBSTACLES(d)
#else
#define GIVABLE(d) (OBSTACLES(d) & ~OTHERS(d) & ~ELSEWHERE(d))
#endif
#define TIMESOUT(d) (OPEN(d) && ((evicts[d] && GIVABLE(d) != 0) || (BACK(d) && OBSTACLES(d) != 0)))
#define DRAINED(d)  (OPEN(d) && mark[d] == kept && LEAVING(d) == 0 && (NEED(d) & ~sure[d]) == 0)

#if defined(MUTE)
#define FINISHED(d) ((d) == 0 || record[d] == gone)
#elif defined(POOL)
#define FINISHED(d) ((record[d] == gone || (returned[d] && MINE(d) == 0)) && mark[d] == unmarked)
#else
#define FINISHED(d) (record[d] == gone && mark[d] == unmarked)
#endif
#define FREE(b)     (lock[b] == 0 && away[b] == 0 && flight[b] == 0)
#if NM == 2
#define IDLE (!busy[0] && !busy[1])
#else
#define IDLE (!busy[0] && !busy[1] && !busy[2])
#endif
#define ENDED (IDLE && FORDRAINS(FINISHED) && FORALL(FREE) && (mutex == 0 || record[mutex-1] == gone))

#ifdef BREAK_LOOK
#define FRESHATBOOT(d) prints[d]
#else
#define FRESHATBOOT(d) 0
#endif

/* MUTE: nothing about node 0 can be written. */
#ifdef MUTE
#define WRITES(d) ((d) != 0)
#else
#define WRITES(d) 1
#endif

mtype = { nothing, takeMutex, giveMutex, writeLock, removeLock, promise, unpromise, finish };

#define DECIDE(what, budget, keeps, gives) \
	step = what; b = budget; nsure = keeps; ngiven = gives; busy[m] = 1
#define AGAIN \
	step = nothing; b = 0; nsure = 0; ngiven = 0; busy[m] = 0; changed[m] = 0; goto again

/* Reconciliations of one node, one after the other: read and decide, write the
 * status, write one more thing. Each may crash before each write. Then nothing
 * is remembered. */
proctype reconcile(byte m) {
	byte b, nsure, ngiven;
	byte d = NODE(m);
	mtype step = nothing;
again:
	if
	:: atomic { RELEASE(d) != 0 -> DECIDE(removeLock, LAST(RELEASE(d)), KEPT(d) & ~RELEASE(d), 0) }
	:: atomic { record[d] != gone && RELEASE(d) == 0 && HASMUTEX(d) && !WANTS(d) -> DECIDE(giveMutex, 0, KEPT(d), 0) }
	/* A promise that has to go goes before anything is taken. */
	:: atomic { MAYTAKE(d) && !UNASKS(d) -> DECIDE(takeMutex, 0, KEPT(d), 0) }
	:: atomic { MAYWRITE(d) && !UNASKS(d) ->
		HOLDS(!JUMPS(d) || yielded[d], "BROKEN: of those who can go, the one that has waited longest goes first\n");
		DECIDE(writeLock, FIRST(d), KEPT(d), 0) }
	:: atomic { CONFIRMS(d) -> DECIDE(nothing, 0, NEED(d), 0) }
	:: atomic { TIMESOUT(d) -> DECIDE(nothing, 0, (BACK(d) -> 0 : KEPT(d)), (evicts[d] -> GIVABLE(d) : 0)) }
	:: atomic { PROMISED(d) -> printf("node %d: status: promised\n", d); boot[d] = same; mark[d] = kept; WROTE(RECORD(d), m); goto again }
	:: atomic { ASKS(d) -> DECIDE(promise, 0, KEPT(d), 0) }
	:: atomic { UNASKS(d) && record[d] != gone -> DECIDE(unpromise, 0, sure[d], 0) }
	:: atomic { record[d] == complete && MINE(d) == 0 && mark[d] == unmarked && !HASMUTEX(d) -> DECIDE(finish, 0, sure[d], 0) }
	:: atomic { LOOKS(d) ->
		printf("node %d: status: looks, boot ID %d, new containers %d\n", d, booted[d], prints[d]);
		if
		:: booted[d] && boot[d] == same -> boot[d] = other; fresh[d] = FRESHATBOOT(d)
		:: else -> fresh[d] = fresh[d] | prints[d]
		fi; prints[d] = 0; WROTE(RECORD(d), m); goto again }
	:: atomic { RETURNS(d) -> printf("node %d: status: returned\n", d); returned[d] = 1; sure[d] = 0; given[d] = 0; WROTE(RECORD(d), m); goto again }
	:: atomic { ENDED -> goto over }
	fi;

	/* The status, if it is another one. */
	if
	:: atomic { (nsure != sure[d] || ngiven != 0) && !STALE(RECORD(d)) ->
		printf("node %d: status: confirmed %d, given up %d (budgets as bits)\n", d, nsure, given[d] | ngiven);
		sure[d] = nsure; given[d] = given[d] | ngiven;
#ifdef RETURN_SURE
		if :: nsure == 0 && mark[d] == kept && node[d] == up && record[d] == open -> mark[d] = asked; boot[d] = none :: else fi;
#endif
		if :: nsure != 0 && boot[d] == none && record[d] == open -> boot[d] = same; mark[d] = kept :: else fi;
		WROTE(RECORD(d), m) }
	:: atomic { (nsure != sure[d] || ngiven != 0) && STALE(RECORD(d)) -> AGAIN }
	:: atomic { (nsure != sure[d] || ngiven != 0) && trouble > 0 -> CRASH; AGAIN }
	:: nsure == sure[d] && ngiven == 0
	fi;

	/* The step. */
	if
	:: atomic { step == nothing -> AGAIN }
	:: atomic { trouble > 0 && step != nothing -> CRASH; AGAIN }
	:: atomic { step == takeMutex ->
		if
		:: STALE(MUTEX) -> skip
		:: else ->
			printf("node %d: takes the mutex\n", d);
			HOLDS(MUTEXFREE || HASMUTEX(d), "BROKEN: the mutex has at most one holder\n");
			mutex = OWNS(d); late_mutex = 0; WROTE(MUTEX, m)
		fi; AGAIN }
	:: atomic { step == giveMutex ->
		if
		:: STALE(MUTEX) -> skip
		:: else ->
			printf("node %d: gives the mutex\n", d);
			HOLDS(HASMUTEX(d), "BROKEN: the mutex has at most one holder\n");
			mutex = 0; late_mutex = 0; WROTE(MUTEX, m)
		fi; AGAIN }
	:: atomic { step == writeLock ->
		if
		:: OLD(b) -> skip
		:: else ->
			printf("node %d: locks budget %d\n", d, b);
			HOLDS(lock[b] == 0 || lock[b] == OWNS(d), "BROKEN: a lock has one holder\n");
#if !defined(BREAK_MUTEX) && !defined(LIMIT_WRITE) && !defined(REMAKE) && LATE0 + LATE1 == 0
			HOLDS(record[d] != open || lock[b] != 0 || (MISSING(d) & (BIT(b) - 1)) == 0 && (MINE(d) & ~sure[d]) < BIT(b), "BROKEN: locks are taken in order\n");
#endif
			lock[b] = OWNS(d); WROTE(BIT(b), m)
		fi; AGAIN }
	:: atomic { step == removeLock ->
		if
		:: OLD(b) -> skip
		:: else ->
			printf("node %d: frees budget %d\n", d, b);
			HOLDS(lock[b] == OWNS(d), "BROKEN: a lock has one holder\n");
			lock[b] = 0; WROTE(BIT(b), m)
		fi; AGAIN }
	:: atomic { step == promise ->
		if
		:: STALE(RECORD(d)) -> skip
		:: else -> printf("node %d: bears a promise\n", d); if :: mark[d] == unmarked -> mark[d] = asked :: else fi
		fi; AGAIN }
	:: atomic { step == unpromise ->
		if
		:: STALE(RECORD(d)) -> skip
		:: else -> printf("node %d: bears no promise any more\n", d); mark[d] = unmarked
		fi; AGAIN }
	:: atomic { step == finish ->
		if
		:: STALE(RECORD(d)) -> skip
		:: else ->
			printf("node %d: deletes the record\n", d);
			record[d] = gone; sure[d] = 0; given[d] = 0; WROTE(RECORD(d), m)
		fi; AGAIN }
	fi;
over:	busy[m] = 0
}

#define FREES(b) lock[b] = 0; WROTE(BIT(b), NOBODY)

/* By then the node has not gone down, and does not any more; or the kubelet has reported. */
#ifdef LIMIT_DOWNTIME
#define INTIME(d) 1
#else
#define INTIME(d) (node[d] == up || node[d] == told)
#endif
#define REPORTED(d) (node[d] == back && booted[d] && stale[d] == 0)
#ifdef POOL
#define COMPLETES(d) 0
#else
#ifdef BACK_FIRST       /* nobody says Complete before the node is back */
#define DONE(d) (node[d] == back)
#else
#define DONE(d) (node[d] != up)
#endif
#define COMPLETES(d) record[d] == open && DONE(d) -> \
		printf("node %d: the maintenance is complete\n", d); \
		record[d] = complete; WROTE(RECORD(d), NOBODY)
#endif

/* Node d, its pods, and who asked for the maintenance. */
inline lives(d) {
	if
	:: node[d] == up && unborn[d] == 0 && DRAINED(d) -> printf("node %d: is Drained\n", d); node[d] = told
	:: node[d] == told && !passed[d] ->
		printf("node %d: goes down with pods %d\n", d, on[d]);
#ifndef REMAKE
		HOLDS(record[d] != open || (NEED(d) & ~MINE(d)) == 0, "BROKEN: who is Drained has every lock\n");
#endif
		node[d] = down; ready[d] = 0; stale[d] = on[d];
		HOLDS(FORALL(WITHINBUDGET), "BROKEN: no budget has more pods down than it allows\n")
	:: node[d] == down -> printf("node %d: is back\n", d); node[d] = back; REPORT(d)
	:: node[d] == down && seen[d] != 0 -> printf("node %d: its pods are shown as not ready\n", d); seen[d] = 0
	:: node[d] == back && !booted[d] -> printf("node %d: the kubelet reports the boot ID\n", d); booted[d] = 1
	:: node[d] == back && ready[d] != on[d] ->
		printf("node %d: pod of budget %d is ready again\n", d, LOWEST(on[d] & ~ready[d]));
		ready[d] = ready[d] | BIT(LOWEST(on[d] & ~ready[d])); REPORT(d)
	:: COMPLETES(d)
#ifdef LIMIT_AGAIN
	:: trouble > 0 && returned[d] && node[d] == back && ready[d] == on[d] ->
		printf("node %d: goes down once more\n", d); trouble = trouble - COST; node[d] = down; ready[d] = 0;
		HOLDS(FORALL(WITHINBUDGET), "BROKEN: no budget has more pods down than it allows\n")
#endif
#if !defined(BREAK_QUEUE) && !defined(BREAK_YIELD)
	:: (trouble > 0 || !WRITES(0)) && YIELDS(d) ->
		printf("node %d: has let others go first for long enough\n", d); trouble = trouble - (WRITES(0) -> COST : 0); yielded[d] = 1
#endif
	:: record[d] == complete && boot[d] == same && !passed[d] && INTIME(d) ->
		printf("node %d: the expected downtime has passed\n", d); passed[d] = 1
	:: unborn[d] != 0 && node[d] == up -> printf("node %d: needs budgets %d as well\n", d, unborn[d]); unborn[d] = 0; WROTE(RECORD(d), NOBODY)
	fi
}

/* What the API shows of a pod on node d. */
inline reports(d, b) {
	if
	:: node[d] == back && ((stale[d] | (seen[d] ^ ready[d])) & BIT(b)) ->
		prints[d] = prints[d] | (stale[d] & BIT(b)); stale[d] = stale[d] & ~BIT(b);
		seen[d] = (seen[d] & ~BIT(b)) | (ready[d] & BIT(b));
		printf("node %d: the kubelet reports the pod of budget %d, ready: %d\n", d, b, (ready[d] >> b) & 1)
#ifndef PROMPT
	:: trouble > 0 && boot[d] == same && (node[d] == up || node[d] == told) && (on[d] & ~prints[d] & BIT(b)) ->
		printf("node %d: the pod of budget %d has a new container\n", d, b);
		trouble = trouble - COST; prints[d] = prints[d] | BIT(b)
#endif
	fi
}

/* Budget b and those who evict, own, or wait for replacements. */
inline happens(b) {
	if
#ifndef REMAKE          /* without its lock a budget may allow an eviction while a node goes */
	:: trouble > 0 && lock[b] == 0 && flight[b] == 0 && SHOWNDOWN(b) == 0 ->
		printf("budget %d: an eviction by others is admitted\n", b); trouble = trouble - COST; flight[b] = FOREIGN
#endif
	:: flight[b] != 0 ->
		if
		:: SHOWNDOWN(b) == 0 ->
			printf("budget %d: an eviction lands (of node %d; %d: of others)\n", b, flight[b] - 1, FOREIGN - 1);
			away[b]++;
			if
			:: flight[b] == FOREIGN -> skip
			:: else ->
				on[flight[b]-1] = on[flight[b]-1] & ~BIT(b); ready[flight[b]-1] = ready[flight[b]-1] & ~BIT(b);
				seen[flight[b]-1] = seen[flight[b]-1] & ~BIT(b);
				WROTE(RECORD(flight[b]-1), NOBODY)	/* spec.pods */
			fi;
			HOLDS(WITHINBUDGET(b), "BROKEN: no budget has more pods down than it allows\n")
		:: else -> printf("budget %d: an eviction is refused\n", b)
		fi; flight[b] = 0
	:: away[b] != 0 -> printf("budget %d: a replacement is ready\n", b); away[b]--
	:: trouble > 0 && lock[b] == 0 -> printf("budget %d: its owner locks it\n", b); trouble = trouble - COST; lock[b] = OWNER; WROTE(BIT(b), NOBODY)
#ifdef REMAKE
	:: trouble > 0 ->
		printf("budget %d: it is deleted and made anew\n", b); trouble = trouble - COST;
		sure[0] = sure[0] & ~BIT(b); given[0] = given[0] & ~BIT(b); WROTE(RECORD(0), NOBODY);
		sure[1] = sure[1] & ~BIT(b); given[1] = given[1] & ~BIT(b); WROTE(RECORD(1), NOBODY);
#if ND == 3
		sure[2] = sure[2] & ~BIT(b); given[2] = given[2] & ~BIT(b); WROTE(RECORD(2), NOBODY);
#endif
		FREES(b)
#endif
	:: lock[b] == OWNER -> printf("budget %d: its owner frees it, or the lock ends\n", b); FREES(b)
	fi
}

/* Our own evictor, and the keeper, who removes locks without a record. */
inline works(d, b) {
	if
	:: (LEAVING(d) & BIT(b)) && record[d] == open && node[d] == up && lock[b] == 0 && flight[b] == 0 && SHOWNDOWN(b) == 0 ->
		printf("node %d: evicts its pod of budget %d\n", d, b); flight[b] = OWNS(d)
	:: lock[b] == OWNS(d) && record[d] == gone && mark[d] == unmarked -> printf("budget %d: the keeper frees it\n", b); FREES(b)
	:: trouble > 0 && lock[b] == OWNS(d) && record[d] == complete && (boot[d] == none || passed[d] || REPORTED(d)) ->
		printf("budget %d: the lock of node %d ends\n", b, d); trouble = trouble - COST; FREES(b)
	fi
}

inline goeswrong(d) {
	if
	:: trouble > 0 && node[d] == up && record[d] == open ->
		printf("node %d: the maintenance is called off\n", d);
		trouble = trouble - COST; record[d] = complete; WROTE(RECORD(d), NOBODY)
	:: trouble > 0 && record[d] == open ->
		printf("node %d: somebody deletes the record\n", d);
		trouble = trouble - COST; record[d] = gone; sure[d] = 0; given[d] = 0; returned[d] = 0; fresh[d] = 0; boot[d] = none;
		WROTE(RECORD(d), NOBODY)
	:: record[d] == gone && mark[d] != unmarked ->	/* its maintenance goes on, or is over */
		printf("node %d: the record is made again\n", d);
		if :: record[d] = open :: record[d] = complete fi;
		boot[d] = same; fresh[d] = 0; prints[d] = 0; mark[d] = kept; WROTE(RECORD(d), NOBODY)
	fi
}

proctype world() {
	do
	:: atomic { lives(0) }
	:: atomic { lives(1) }
	:: atomic { goeswrong(0) }
	:: atomic { goeswrong(1) }
	:: atomic { happens(0) }
	:: atomic { happens(1) }
	:: atomic { works(0, 0) }
	:: atomic { reports(0, 0) }
	:: atomic { works(0, 1) }
	:: atomic { reports(0, 1) }
	:: atomic { works(1, 0) }
	:: atomic { reports(1, 0) }
	:: atomic { works(1, 1) }
	:: atomic { reports(1, 1) }
#if ND == 3
	:: atomic { lives(2) }
	:: atomic { goeswrong(2) }
	:: atomic { works(2, 0) }
	:: atomic { reports(2, 0) }
	:: atomic { works(2, 1) }
	:: atomic { reports(2, 1) }
#endif
#if NB == 3
	:: atomic { happens(2) }
	:: atomic { works(0, 2) }
	:: atomic { reports(0, 2) }
	:: atomic { works(1, 2) }
	:: atomic { reports(1, 2) }
#endif
#if ND == 3 && NB == 3
	:: atomic { works(2, 2) }
	:: atomic { reports(2, 2) }
#endif
	:: atomic { trouble > 0 && mutex != 0 && !late_mutex ->
		printf("the time of the mutex is over\n"); trouble = trouble - COST; late_mutex = 1 }
	:: atomic { trouble > 0 && COST == 1 -> trouble-- }	/* nothing has to go wrong */
	:: ENDED -> break
	od
}

/* Two nodes with the same needs may change their names. */
#define WAIT(e, f, g) place[e] = 0; place[f] = 1; place[g] = 2
#if ND == 2
#define ORDER place[1] = 1
#elif defined(ANY_ORDER)
#define ORDER if :: WAIT(0,1,2) :: WAIT(0,2,1) :: WAIT(1,0,2) :: WAIT(1,2,0) :: WAIT(2,0,1) :: WAIT(2,1,0) fi
#else
#define ORDER WAIT(0,1,2)
#endif

inline begins(d, needs, late) {
	on[d] = needs; ready[d] = needs; seen[d] = needs; unborn[d] = late;
#ifndef ALL_WAIT
	if :: evicts[d] = 1 :: evicts[d] = 0 fi;
#endif
	if :: WRITES(d) -> run reconcile(d) :: else fi
}

init {
	atomic {
		ORDER;
		begins(0, NEEDS0, LATE0);
		begins(1, NEEDS1, LATE1);
#if ND == 3
		begins(2, NEEDS2, 0);
#endif
#ifdef LIMIT_WRITE
		run reconcile(ND);
#endif
		run world()
	}
}

/* Under weak fairness: every drain ends, and leaves nothing locked. */
ltl ends { <> ENDED }
