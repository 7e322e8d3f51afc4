package nodeagent

import (
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// blip limits the silence of the API that is not recorded.
const blip = 30 * time.Second

// Signs are the signs of life of the API, by a clock since boot that runs while the host sleeps.
type Signs struct {
	// Uptime is the time of the decision; 0 is unknown.
	Uptime time.Duration
	// Began is the agent's first request, Answered the last answer; 0 is never.
	Began, Answered time.Duration
}

// Silence holds the start of the time without an answer of an API server.
type Silence struct {
	// BootID is the boot of which SinceSeconds count.
	BootID       string `json:"bootID"`
	SinceSeconds int64  `json:"sinceSeconds"`
}

// since returns the start of the silence of all API servers. The record of an earlier agent counts
// in the same boot until a server answers. A node that was off has sent no request, so a boot
// starts again.
func (d *decider) since() time.Duration {
	signs := d.ControlPlane.Signs
	if signs.Answered > 0 {
		return max(signs.Began, signs.Answered)
	}
	from := signs.Began
	if known := d.Journal.Silence; known != nil && known.BootID == d.Self.BootID {
		from = min(from, time.Duration(known.SinceSeconds)*time.Second)
	}
	return from
}

// abandoned reports whether parts are restored because no API server responds.
func (d *decider) abandoned() bool {
	c := &d.ControlPlane
	if c.RestoreAfter <= 0 || c.Signs.Uptime <= 0 {
		return false
	}
	left := d.since() + c.RestoreAfter - c.Signs.Uptime
	if left > 0 {
		d.until(d.Now.Add(left))
	}
	return left <= 0
}

// silence returns the record of the silence while parts of the control plane are away. If no API
// server has answered this agent yet, all of the silence counts, so that an agent that crashes
// repeatedly stops waiting.
func (d *decider) silence() *Silence {
	away := func(it *item) bool { return it.held != nil && d.part(it) }
	for _, it := range d.items {
		if !away(it) || d.ControlPlane.Signs.Uptime <= 0 {
			continue
		}
		since := d.since()
		if d.ControlPlane.Signs.Answered > 0 && d.ControlPlane.Signs.Uptime-since < blip {
			return nil
		}
		return &Silence{BootID: d.Self.BootID, SinceSeconds: int64(since / time.Second)}
	}
	return nil
}

// abandon puts a part of the control plane back, which is written down in the same breath.
func (d *decider) abandon(it *item, e *Entry) {
	e.Unanswered = true
	if it.plain == nil {
		d.move(Move{File: it.file, From: it.held.Name, To: it.file})
	}
}

// confess reports a part that was restored without an API server once one responds.
func (d *decider) confess(e *Entry) {
	signs := d.ControlPlane.Signs
	if !e.Unanswered || d.Node == nil || signs.Answered == 0 || signs.Uptime-signs.Answered >= blip {
		return
	}
	e.Unanswered = false
	d.d.Events = append(d.d.Events, event.StaticPodRestored(d.Node, fmt.Sprintf(
		"Restored %s at %s because pod %s is part of the control plane and no API server responded.", e.File, clock(e.At), e.Pod))...)
}

// order has parts of the control plane come back in their order where several do at once.
func (d *decider) order() {
	rank := func(m Move) int {
		if m.Hold {
			return -1
		}
		return d.items[m.File].rank()
	}
	slices.SortStableFunc(d.d.Moves, func(a, b Move) int { return rank(b) - rank(a) })
}

// waiting says of a part that may come back what it waits for.
func waiting(pod *v1alpha1.StaticPod, later string) {
	pod.Message = fmt.Sprintf("%s waits until %s has started.", pod.Manifest, later)
}
