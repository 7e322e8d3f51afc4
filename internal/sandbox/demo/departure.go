package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// parts maps the kinds of a Machine's objects, each watched on its own, to their words in the
// story.
var parts = map[string]string{"SandboxMachine": "instance", "SandboxConfig": "bootstrap", "Node": "node"}

// departure is the story of a Machine from its deletion to its end. Each line is
// said once.
type departure struct {
	say    say
	worker string

	pods     map[types.UID]*leaver
	cordoned bool
	silent   bool
	detached bool
	step     string // the reason of condition Deleting
	message  string
	refused  bool
	ended    int // how many of its parts are gone
	gone     bool
	goneAt   time.Duration
	budget   floor
}

// leaver is a pod of the Machine's node.
type leaver struct {
	name      string
	evicted   bool
	evictedAt time.Duration
	gone      bool
}

func newDeparture(worker string, say say) *departure {
	return &departure{say: say, worker: worker, pods: map[types.UID]*leaver{}}
}

// isGone reports whether the Machine and all of its parts are gone.
func (d *departure) isGone() bool { return d.gone && d.ended == len(parts) }

// see adds one change to the story.
func (d *departure) see(at time.Duration, change watch.Event) error {
	gone := change.Type == watch.Deleted
	switch object := change.Object.(type) {
	case *v1alpha1.Machine:
		d.seeMachine(at, object, gone)
	case *api.SandboxMachine:
		d.seeEnd(at, "SandboxMachine", gone)
	case *api.SandboxConfig:
		d.seeEnd(at, "SandboxConfig", gone)
	case *corev1.Node:
		d.seeNode(at, object)
		d.seeEnd(at, "Node", gone)
	case *corev1.Pod:
		d.seePod(at, object, gone)
	case *storagev1.VolumeAttachment:
		d.seeVolume(at, object, gone)
	case *policyv1.PodDisruptionBudget:
		d.budget.see(object)
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

func (d *departure) seeMachine(at time.Duration, machine *v1alpha1.Machine, gone bool) {
	deleting := meta.FindStatusCondition(machine.Status.Conditions, v1alpha1.ConditionDeleting)
	if deleting != nil {
		d.message = deleting.Message
		if deleting.Reason != d.step {
			d.step = deleting.Reason
			d.say(at, "step", d.step+": "+indented(d.message))
		}
	}
	d.seeRefusal(at, machine)
	if gone {
		d.gone, d.goneAt = true, at
		d.say(at, "gone", "Machine "+d.worker)
	}
}

// seeRefusal prints the first eviction that the API server refuses.
func (d *departure) seeRefusal(at time.Duration, machine *v1alpha1.Machine) {
	draining := meta.FindStatusCondition(machine.Status.Conditions, v1alpha1.ConditionDrainingSucceeded)
	if draining == nil || d.refused {
		return
	}
	_, refused, found := strings.Cut(draining.Message, "* Pods with eviction failed:\n")
	if found {
		d.refused = true
		first, _, _ := strings.Cut(refused, "\n")
		d.say(at, "waits", strings.TrimPrefix(first, "  * "))
	}
}

// indented makes a message of several lines fit into the timeline.
func indented(message string) string {
	return strings.ReplaceAll(message, "\n", "\n"+strings.Repeat(" ", 19))
}

func (d *departure) seeEnd(at time.Duration, kind string, gone bool) {
	if gone {
		d.ended++
		d.say(at, parts[kind], kind+" "+d.worker+" is gone")
	}
}

func (d *departure) seeNode(at time.Duration, node *corev1.Node) {
	switch {
	case node.Spec.Unschedulable && !d.cordoned:
		d.cordoned = true
		d.say(at, "cordoned", d.worker)
	case !podclass.NodeReady(node) && !d.silent:
		d.silent = true
		d.say(at, "silent", "Node "+d.worker+" is no longer ready")
	}
}

func (d *departure) seePod(at time.Duration, pod *corev1.Pod, gone bool) {
	p, known := d.pods[pod.UID]
	if !known {
		p = &leaver{name: pod.Name}
		d.pods[pod.UID] = p
	}
	if pod.DeletionTimestamp != nil && !p.evicted {
		p.evicted, p.evictedAt = true, at
		d.say(at, "evicted", p.name)
	}
	if gone && !p.gone {
		p.gone = true
		if took := at - p.evictedAt; took > slow {
			d.say(at, "gone", fmt.Sprintf("%s, %.1fs after its eviction", p.name, took.Seconds()))
		}
	}
}

func (d *departure) seeVolume(at time.Duration, attachment *storagev1.VolumeAttachment, gone bool) {
	if gone && attachment.Spec.NodeName == d.worker && !d.detached {
		d.detached = true
		d.say(at, "detached", cmp.Or(ptr.Deref(attachment.Spec.Source.PersistentVolumeName, ""), attachment.Name)+" from "+d.worker)
	}
}

// lastStatus describes the progress for an error.
func (d *departure) lastStatus() string {
	return cmp.Or(d.step, "the deletion has not begun") + ": " + d.message
}

func (d *departure) printSummary(out io.Writer) {
	evicted, stayed := 0, []string{}
	for _, p := range d.pods {
		if p.evicted {
			evicted++
		} else {
			stayed = append(stayed, p.name)
		}
	}
	slices.Sort(stayed)
	fmt.Fprintf(out, "\n%s was gone after %.1fs: %d pods evicted; pods that stayed: %s.\n",
		d.worker, d.goneAt.Seconds(), evicted, cmp.Or(strings.Join(stayed, ", "), "none"))
	d.budget.print(out)
}
