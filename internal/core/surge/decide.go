package surge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// defaultPatience is the time for which a Deployment that does not say waits for a pod.
const defaultPatience = 600 * time.Second

// Decide returns what happens next to the pods of a Deployment.
func Decide(s Snapshot) Decision {
	p := newPass(s)
	for _, d := range p.detached {
		p.goOn(d)
	}
	for _, w := range p.waiting() {
		p.begin(w)
	}
	p.settleMarks()
	return p.decision
}

type pass struct {
	Snapshot
	sets map[types.UID]*replicaSet
	// records holds those of detached pods, by the pod's UID.
	records map[types.UID]Record
	// wanted are the evacuations that somebody asks for, by the pod's UID.
	wanted   map[types.UID]*v1alpha1.Evacuation
	detached []detachedPod
	// moving are the names of those that take up the Deployment's surge.
	moving []string
	// leaving are detached pods that are replaced: they serve no more.
	leaving map[types.UID]bool
	// ending are unwanted pods after our turn, which may be evicted until their evacuation is gone.
	ending map[types.UID]bool
	// marked are the pods that were chosen to make room, by the pod they make it for.
	marked    map[types.UID]types.UID
	makesRoom map[types.UID]bool
	// available, ready and needs are counted on first use; nil before.
	available, ready, needs *census
	// routes lead to detached pods; nil until somebody asks.
	routes []routes
	// soon are pods that will be available by time alone.
	soon []soonAvailable

	decision Decision
}

type detachedPod struct {
	pod    *corev1.Pod
	record Record
}

// returned means that the pod has its label again and waits for its ReplicaSet.
func (d detachedPod) returned() bool {
	return d.pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == d.record.Hash
}

func newPass(s Snapshot) *pass {
	p := &pass{
		Snapshot: s, sets: map[types.UID]*replicaSet{}, records: map[types.UID]Record{}, wanted: map[types.UID]*v1alpha1.Evacuation{},
		leaving: map[types.UID]bool{}, ending: map[types.UID]bool{}, marked: map[types.UID]types.UID{}, makesRoom: map[types.UID]bool{},
	}
	for _, set := range s.ReplicaSets {
		p.sets[set.UID] = &replicaSet{ReplicaSet: set}
	}
	for _, e := range s.Evacuations {
		switch {
		case len(evacuation.Instigators(e)) > 0:
			p.wanted[e.Spec.PodRef.UID] = e
		case pastOurTurn(e) && e.DeletionTimestamp == nil:
			p.ending[e.Spec.PodRef.UID] = true
		}
	}
	p.readPods()
	p.distribute()
	return p
}

func (p *pass) readPods() {
	for _, pod := range p.Pods {
		if record, ok := recordOf(pod); ok {
			p.records[pod.UID] = record
			p.detached = append(p.detached, detachedPod{pod, record})
			p.leaving[pod.UID] = p.ending[pod.UID] || pastOurTurn(p.wanted[pod.UID])
		}
		if mark, ok := markOf(pod); ok {
			p.marked[mark.For] = pod.UID
		}
	}
	slices.SortFunc(p.detached, func(a, b detachedPod) int {
		return cmp.Or(a.record.Since.Compare(b.record.Since.Time), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for _, uid := range p.marked {
		p.makesRoom[uid] = true
	}
	for _, d := range p.detached {
		if d.pod.DeletionTimestamp == nil && !podclass.Terminal(d.pod) {
			p.moving = append(p.moving, d.pod.Name)
		}
	}
}

func ourTurn(e *v1alpha1.Evacuation) bool {
	return e != nil && e.Status.ActiveEvacuatorClass == v1alpha1.DeploymentEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
}

// pastOurTurn reports whether the pod may be evicted, as far as we are concerned.
func pastOurTurn(e *v1alpha1.Evacuation) bool {
	return e != nil && e.Status.ActiveEvacuatorClass != "" && !ourTurn(e)
}

// goOn decides about a pod that has a record.
func (p *pass) goOn(d detachedPod) {
	e := p.wanted[d.pod.UID]
	switch {
	case d.pod.DeletionTimestamp != nil:
	case podclass.Terminal(d.pod):
		p.add(remove(d.pod, "", "it has finished, and no ReplicaSet cleans it up"))
	case d.returned() && podclass.Owner(d.pod) != nil:
		p.add(Move{{Pod: d.pod, Changed: dropRecord(d.pod), Message: "The pod is back in its ReplicaSet."}})
	case d.returned() && p.home(d) != nil: // It is taken back any moment.
	case e == nil && p.ending[d.pod.UID]: // To give it back now could cost both, it and its replacement.
	case e == nil:
		p.add(p.giveBack(d, Cancelled, "its evacuation is no longer requested"))
	case p.home(d) == nil:
		p.add(p.finish(e, Refused, fmt.Sprintf("ReplicaSet %s is gone, so pod %s is not replaced.", d.record.ReplicaSet.Name, d.pod.Name)))
	case p.Mode == Off && ourTurn(e) && p.covered(d):
		p.add(p.finish(e, Refused, coveredMessage(d, switchedOff)))
	case p.Mode == Off && ourTurn(e):
		message := fmt.Sprintf("Pod %s goes back to ReplicaSet %s: %s.", d.pod.Name, d.record.ReplicaSet.Name, switchedOff)
		p.add(unsurged(p.finish(e, Refused, message)), p.giveBack(d, "", switchedOff))
	default:
		p.await(d, e)
	}
}

const switchedOff = "surging is switched off"

// await waits for the replacement of a pod as long as the Deployment would.
func (p *pass) await(d detachedPod, e *v1alpha1.Evacuation) {
	others := p.availableBut(d.pod)
	need := min(d.record.Need, p.wantedFor(d))
	if others >= need && released(d) {
		p.add(p.finish(e, Completed, p.replacedMessage(d, others, need)))
		return
	}
	if p.tellUnplaced(e, p.unplaced(d)) {
		return
	}
	patience := patience(p.Deployment)
	if left := d.record.Since.Add(patience).Sub(p.Now); left > 0 || p.ClockSkewed {
		p.lookAgain(left)
		p.report(e, v1alpha1.ReasonWaitingForReplacement, p.awaitedMessage(d, others, need))
		return
	}
	why := fmt.Sprintf("no replacement was available within %s", patience)
	if p.covered(d) {
		p.add(p.finish(e, GaveUp, coveredMessage(d, why)))
		return
	}
	p.add(unsurged(p.finish(e, GaveUp, p.gaveUpMessage(d, patience))), p.giveBack(d, "", why))
}

// finish ends our turn if it is ours. The pod serves no more for others.
func (p *pass) finish(e *v1alpha1.Evacuation, result Result, message string) Move {
	if !ourTurn(e) {
		return nil
	}
	p.leaving[e.Spec.PodRef.UID] = true
	p.available.leave(e.Spec.PodRef.UID)
	p.ready.leave(e.Spec.PodRef.UID)
	p.needs.leave(e.Spec.PodRef.UID)
	return complete(p.Now, e, result, message)
}

// giveBack returns a pod to its ReplicaSet after the newcomer is marked; without one it is deleted.
func (p *pass) giveBack(d detachedPod, result Result, why string) Move {
	home := p.home(d)
	if home == nil {
		return remove(d.pod, result, fmt.Sprintf("%s, and its ReplicaSet %s is gone", why, d.record.ReplicaSet.Name))
	}
	message := fmt.Sprintf("Goes back to ReplicaSet %s: %s.", home.Name, why)
	return append(p.makeRoom(d, home), Write{
		Pod: d.pod, Changed: giveBackLabel(d.pod, d.record), Message: message, Result: result,
		Events: []event.Event{event.PodGivenBack(d.pod, message)},
	})
}

// makeRoom marks the newest pod of the ReplicaSet as the one to go.
func (p *pass) makeRoom(d detachedPod, home *replicaSet) Move {
	if _, made := p.marked[d.pod.UID]; made || len(home.owned) < int(wantedBy(home.ReplicaSet)) {
		return nil
	}
	home.sort()
	for home.candidate < len(home.owned) && !p.mayMakeRoom(home.owned[home.candidate]) {
		home.candidate++
	}
	if home.candidate == len(home.owned) {
		return nil
	}
	newcomer := home.owned[home.candidate]
	home.candidate++
	lowest := min(deletionCost(d.pod), home.cheapest)
	p.marked[d.pod.UID] = newcomer.UID
	record := replacement{Deployment: d.record.Deployment, For: d.pod.UID}
	return Move{{
		Pod: newcomer, Changed: mark(newcomer, record, max(lowest, math.MinInt32+1)-1),
		Message: fmt.Sprintf("Makes room for pod %s.", d.pod.Name),
	}}
}

// mayMakeRoom leaves out pods with a part of their own in this.
func (p *pass) mayMakeRoom(pod *corev1.Pod) bool {
	_, detached := p.records[pod.UID]
	return p.wanted[pod.UID] == nil && !detached && !p.makesRoom[pod.UID]
}

// settleMarks unmarks pods whose counterpart is back or gone, once no pod is surplus.
func (p *pass) settleMarks() {
	awaited := map[types.UID]bool{}
	for _, d := range p.detached {
		// It is still on its way back, or may be.
		awaited[d.pod.UID] = awaited[d.pod.UID] || !(d.returned() && podclass.Owner(d.pod) != nil)
	}
	for _, pod := range p.Pods {
		mark, ok := markOf(pod)
		if !ok || pod.DeletionTimestamp != nil || awaited[mark.For] {
			continue
		}
		if owner := podclass.Owner(pod); owner != nil && p.sets[owner.UID] != nil && p.sets[owner.UID].tooMany() {
			continue
		}
		p.add(Move{{Pod: pod, Changed: unmark(pod, mark), Message: "Was not needed to make room."}})
	}
}

// remove deletes a pod that no ReplicaSet would ever take back.
func remove(pod *corev1.Pod, result Result, why string) Move {
	message := fmt.Sprintf("Detached pod %s is deleted: %s.", pod.Name, why)
	return Move{{Pod: pod, Message: message, Result: result, Events: []event.Event{event.DetachedPodDeleted(pod, message)}}}
}

func (p *pass) home(d detachedPod) *replicaSet {
	set := p.sets[d.record.ReplicaSet.UID]
	if set == nil || set.DeletionTimestamp != nil {
		return nil
	}
	return set
}

// add makes one move of several: each is done only if those before it were.
func (p *pass) add(moves ...Move) {
	if move := slices.Concat(moves...); len(move) > 0 {
		p.decision.Moves = append(p.decision.Moves, move)
	}
}

func (p *pass) lookAgain(after time.Duration) {
	if after > 0 && (p.decision.RequeueAfter == 0 || after < p.decision.RequeueAfter) {
		p.decision.RequeueAfter = after
	}
}
