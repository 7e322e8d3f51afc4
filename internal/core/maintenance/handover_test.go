package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// TestARecordThatDoesNotBelong: what was copied from another maintenance, or is about
// another node, or nobody can read, is not believed, and neither is a mark without a record.
func TestARecordThatDoesNotBelong(t *testing.T) {
	t.Parallel()
	donor, old := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	donor.settle()
	record := old.Annotations[v1alpha1.HandedOverAnnotation]
	for name, text := range map[string]string{
		"of another maintenance": strings.Replace(record, `"maintenanceUID":"m"`, `"maintenanceUID":"other"`, 1),
		"of another node":        strings.Replace(record, `"nodeName":"node-7"`, `"nodeName":"node-8"`, 1),
		"no JSON":                "boot-0",
		"empty":                  "",
	} {
		w := newWorld(t, "node-7")
		w.reports("node-7", "boot-2", "v1.36.4", dawn)
		m := w.maintenance("m", drain, nil, "node-7")
		m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true, ReadySeconds: new(int32(0))}
		m.Annotations = map[string]string{v1alpha1.HandedOverAnnotation: text}
		w.run("node-7", 1, 0)
		node := w.find("node-7")
		node.Annotations = map[string]string{v1alpha1.HandedOverByAnnotation: "m"}
		node.Labels[v1alpha1.HandedOverLabel] = "true"
		w.settle()
		if got := w.mark("node-7"); got != "" || m.Annotations[v1alpha1.HandedOverAnnotation] != "" {
			t.Errorf("%s: it is still there: %q, %v", name, got, m.Annotations)
		}
		w.leave("node-7", 0)
		w.later(time.Hour)
		if m.Spec.Stage != drain || whether(m) != "False WaitingForBoot" {
			t.Errorf("%s: %s, %s", name, m.Spec.Stage, whether(m))
		}
	}
}

// TestRecreatedNodeIsAnotherNode: a node that was installed anew and joins under its name is what
// the maintenance waits for; it is not handed over again before it is drained.
func TestRecreatedNodeIsAnotherNode(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true, KubeletVersion: "v1.37.1"})
	w.nodes, w.pods = nil, map[string][]*corev1.Pod{}
	w.later(time.Minute)
	w.expect(t, "it is gone", "Drain, False NodesGone")
	w.node("node-7").UID = types.UID("another")
	w.reports("node-7", "boot-9", "v1.36.4", w.now)
	w.run("node-7", 1, 0)
	w.settle()
	w.expect(t, "it comes back", "Drain, False WaitingForVersion")
	if got := w.mark("node-7"); got != "" {
		t.Errorf("it is handed over under a pod: %q", got)
	}
	w.leave("node-7", 0)
	w.settle()
	if got := w.mark("node-7"); got != "true by m" {
		t.Errorf("it is not handed over: %q", got)
	}
	w.reports("node-7", "boot-9", "v1.37.1", w.now)
	w.later(time.Second)
	w.later(30 * time.Second)
	if m.Spec.Stage != complete {
		t.Errorf("it is not complete: %s", whether(m))
	}
}

// TestASelectorWithoutItsNode: nothing is handed over, so nothing counts.
func TestASelectorWithoutItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.maintenance("m", drain, nil, "node-7")
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w.settle()
	w.expect(t, "there is no node", "Drain, False WaitingForDrain")
	w.node("node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	w.later(time.Hour)
	if whether(m) != "False WaitingForBoot" {
		t.Errorf("it comes: %s", whether(m))
	}
}

// TestTooManyMaintenancesOfANode: what a node has to bear has a bound.
func TestTooManyMaintenancesOfANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	for n := range 17 {
		w.maintenance(fmt.Sprintf("m-%02d", n), drain, nil, "node-7").Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	}
	w.settle()
	last := w.maintenances[16]
	if got := len(strings.Split(w.find("node-7").Annotations[v1alpha1.HandedOverByAnnotation], ",")); got != 16 {
		t.Errorf("it is handed over to %d", got)
	}
	if got := whether(last); got != "False WaitingForDrain" {
		t.Errorf("the last one says %s", got)
	}
	w.maintenances[3].Spec.Stage = complete
	w.later(time.Second)
	if whether(last) != "False WaitingForBoot" || strings.Contains(w.mark("node-7"), "m-03") {
		t.Errorf("the last one does not follow: %s, %q", whether(last), w.mark("node-7"))
	}
}

// TestAChangeOfMind: what is wanted may change until Complete, and who does not want
// anything any more has the node back as before.
func TestAChangeOfMind(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	m.Spec.CompleteWhen = nil
	w.later(time.Second)
	if got := w.mark("node-7") + m.Annotations[v1alpha1.HandedOverAnnotation] + whether(m); got != "none" {
		t.Errorf("without completeWhen there is still %s", got)
	}
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	pass := w.pass()
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || w.announces("node-7") != "Drained MaintenanceInProgress" {
		t.Errorf("what was announced is taken back: %q, %v", says(m), pass.Nodes)
	}
	w.later(time.Hour)
	if m.Spec.Stage != drain || whether(m) != "False WaitingForBoot" {
		t.Errorf("%s, %s: the boot came before it was handed over again", m.Spec.Stage, whether(m))
	}
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{KubeletVersion: "v1.36.4"}
	w.settle()
	if m.Spec.Stage != complete {
		t.Errorf("the node shows that for an hour: %s", whether(m))
	}
}

// halfHandedOver is a node that is drained and of which the record was written; the manager
// was killed before the mark.
func halfHandedOver(t *testing.T) (*world, *v1alpha1.NodeMaintenance) {
	t.Helper()
	w := newWorld(t, "node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	m := w.maintenance("m", drain, nil, "node-7")
	w.settle()
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true, ReadySeconds: new(int32(0))}
	first := maintenance.Decide(w.snapshot())
	w.record(&first.Maintenances[0])
	if m.Annotations[v1alpha1.HandedOverAnnotation] == "" || w.mark("node-7") != "" {
		t.Fatalf("it is not half handed over: %v, %q", m.Annotations, w.mark("node-7"))
	}
	return w, m
}

// TestPodsComeBackBeforeTheMark: a record alone hands nothing over. Under a pod the node gets no
// mark, whether it still is what the record says or has booted since; the boot counts for nothing.
func TestPodsComeBackBeforeTheMark(t *testing.T) {
	t.Parallel()
	for name, boot := range map[string]string{"it is as it was": "boot-1", "it has booted": "boot-2"} {
		w, m := halfHandedOver(t)
		record := m.Annotations[v1alpha1.HandedOverAnnotation]
		w.reports("node-7", boot, "v1.36.4", w.now)
		w.run("node-7", 1, 0)
		w.later(time.Minute)
		if got := w.mark("node-7"); got != "" {
			t.Errorf("%s: it is handed over under a pod: %q", name, got)
		}
		if kept := m.Annotations[v1alpha1.HandedOverAnnotation]; kept != "" && (boot != "boot-1" || kept != record) {
			t.Errorf("%s: a record of what the node is not any more: %s", name, kept)
		}
		w.expect(t, name, "Drain, False WaitingForDrain")
		w.leave("node-7", 0)
		w.later(time.Minute)
		if got := whether(m); w.mark("node-7") != "true by m" || got != "False WaitingForBoot" {
			t.Errorf("%s, and the pod has left: %q, %s", name, w.mark("node-7"), got)
		}
		w.reports("node-7", "boot-3", "v1.36.4", w.now)
		w.later(time.Second)
		if w.later(time.Second); m.Spec.Stage != complete {
			t.Errorf("%s, and boots: %s", name, whether(m))
		}
	}
}

// TestRemovedMarkIsRestored: the label comes back and the hand-over stays; with the
// annotation it begins anew, which is the safe side.
func TestRemovedMarkIsRestored(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	record := m.Annotations[v1alpha1.HandedOverAnnotation]
	delete(w.find("node-7").Labels, v1alpha1.HandedOverLabel)
	w.later(time.Second)
	if w.mark("node-7") != "true by m" || m.Annotations[v1alpha1.HandedOverAnnotation] != record {
		t.Errorf("without the label: %q, %s", w.mark("node-7"), m.Annotations[v1alpha1.HandedOverAnnotation])
	}
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	delete(w.find("node-7").Annotations, v1alpha1.HandedOverByAnnotation)
	w.later(time.Second)
	if got := whether(m); w.mark("node-7") != "true by m" || got != "False WaitingForBoot" {
		t.Errorf("without the annotation: %q, %s", w.mark("node-7"), got)
	}
}
