package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// maxAsked is the number of gates that are asked at the same time, each of which may take 1 MiB.
	maxAsked = 16
	// maxAnswers bounds the answers in memory, and answerMemory their age: an old one is shown until
	// there is another one.
	maxAnswers, answerMemory = 4096, 5 * time.Minute
	// maxBatch and checkTimeout bound the checks of nodes by one state of the cluster.
	maxBatch, checkTimeout = 64, 20 * time.Second
)

// respond answers a question. A text says why the answer is unknown.
type respond func(context.Context, core.Question) (core.Verdict, string)

// gates asks a Prometheus, which may be nil, and an API server.
func gates(prometheus *gate.Prometheus, live client.Reader) respond {
	return func(ctx context.Context, q core.Question) (core.Verdict, string) {
		if q.Query != "" {
			return prometheus.Ask(ctx, q.Query)
		}
		return gate.AskObject(ctx, live, &q.Object)
	}
}

// questions asks what decisions want to know, beside them, and holds the answers. It is safe for
// concurrent use.
type questions struct {
	now   kube.Now
	clock clock.PassiveClock
	gate  respond
	// check returns what answers one batch of questions about nodes.
	check func() respond

	mu      sync.Mutex
	answers map[core.Question]core.Answer
	asked   map[core.Question]bool
	// checking is true while nodes are checked, and rested the time before which they are not.
	checking bool
	rested   time.Time
	ended    sync.WaitGroup
}

func newQuestions(now kube.Now, clk clock.PassiveClock) *questions {
	unknown := func(context.Context, core.Question) (core.Verdict, string) { return core.Unknown, "" }
	return &questions{
		now: now, clock: clk, gate: unknown, check: func() respond { return unknown },
		answers: map[core.Question]core.Answer{}, asked: map[core.Question]bool{},
	}
}

// all returns the answers, without those that are forgotten.
func (q *questions) all() map[core.Question]core.Answer {
	now, _ := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.answers, func(_ core.Question, a core.Answer) bool { return now.Sub(a.Time) > answerMemory })
	return maps.Clone(q.answers)
}

// ask asks as many questions as may be asked now. After each answer it calls done, upon which the
// others are asked. It returns when nodes may be checked again; 0 is never.
func (q *questions) ask(ctx context.Context, all []core.Question, done func()) (due time.Duration) {
	now, _ := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	var nodes []core.Question
	for _, one := range all {
		switch {
		case one.Requirement != "":
			nodes = append(nodes, one)
		case !q.asked[one] && len(q.asked) < maxAsked:
			q.asked[one] = true
			q.ended.Go(func() {
				q.note(one, answer(ctx, q.gate, one, now))
				done()
			})
		}
	}
	if len(nodes) == 0 || q.checking {
		return 0
	}
	if rest := q.rested.Sub(q.clock.Now()); rest > 0 {
		return rest
	}
	q.checking = true
	q.ended.Go(func() { q.checkNodes(ctx, nodes[:min(len(nodes), maxBatch)], now, done) })
	return 0
}

// checkNodes answers questions about nodes, one after the other, until its time is over. Then it rests,
// so that checks take at most a fifth of a core.
func (q *questions) checkNodes(ctx context.Context, nodes []core.Question, now time.Time, done func()) {
	begin := q.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	check := q.check()
	for i, one := range nodes {
		if i > 0 && ctx.Err() != nil {
			break
		}
		q.note(one, answer(ctx, check, one, now))
		done()
	}
	q.mu.Lock()
	q.checking, q.rested = false, q.clock.Now().Add(4*q.clock.Since(begin))
	q.mu.Unlock()
	done()
}

// answer asks a question at a time. A panic is no answer.
func answer(ctx context.Context, by respond, one core.Question, now time.Time) (answer core.Answer) {
	answer = core.Answer{Time: now, Text: "a defect of Ebbtide, see the log of the manager."}
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(fmt.Errorf("%v\n%s", cause, debug.Stack()), "Failed to answer a question of rollouts")
		}
	}()
	answer.Verdict, answer.Text = by(ctx, one)
	return answer
}

// note holds an answer. If there are too many, the oldest is forgotten.
func (q *questions) note(one core.Question, answer core.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, one)
	if _, known := q.answers[one]; !known && len(q.answers) >= maxAnswers {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(q.answers)), func(a, b core.Question) int {
			return cmp.Compare(q.answers[a].Time.UnixNano(), q.answers[b].Time.UnixNano())
		})
		delete(q.answers, oldest)
	}
	q.answers[one] = answer
}

// wait returns when nothing is asked.
func (q *questions) wait() { q.ended.Wait() }
