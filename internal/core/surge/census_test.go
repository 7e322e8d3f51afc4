package surge_test

import (
	"encoding/json"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

var saysAvailable = regexp.MustCompile(`available without it: (\d+)`)

// checkCounts counts again, pod by pod and for each message anew, how many pods are
// available without the one that the message is about.
func (w *world) checkCounts(s surge.Snapshot, decision surge.Decision) {
	w.t.Helper()
	leaving := leavingAtFirst(s)
	for _, move := range decision.Moves {
		for _, write := range move {
			if write.Evacuation == nil {
				continue
			}
			uid := write.Evacuation.Spec.PodRef.UID
			if said := saysAvailable.FindStringSubmatch(write.Message); said != nil {
				w.counted++
				if want := w.availableBut(s, uid, leaving); said[1] != strconv.Itoa(want) {
					w.fail("%q, and there are %d", write.Message, want)
				}
			}
			leaving[uid] = leaving[uid] || write.Status.ActiveEvacuatorCompleted
		}
	}
}

// leavingAtFirst are the pods whose evacuation goes on without us.
func leavingAtFirst(s surge.Snapshot) map[types.UID]bool {
	leaving := map[types.UID]bool{}
	for _, e := range s.Evacuations {
		ours := e.Status.ActiveEvacuatorClass == v1alpha1.DeploymentEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
		asked := len(evacuation.Instigators(e)) > 0 || e.DeletionTimestamp == nil
		leaving[e.Spec.PodRef.UID] = asked && e.Status.ActiveEvacuatorClass != "" && !ours
	}
	return leaving
}

func (w *world) availableBut(s surge.Snapshot, one types.UID, leaving map[types.UID]bool) int {
	count, owned := 0, map[types.UID]int{}
	for _, pod := range s.Pods {
		detached := surge.Detached(pod)
		if pod.UID == one || detached && leaving[pod.UID] || !w.serves(s, pod) {
			continue
		}
		if home := homeOf(pod); detached && home == "" {
			count++
		} else {
			owned[home]++
		}
	}
	for _, set := range s.ReplicaSets {
		count += min(owned[set.UID], int(*set.Spec.Replicas))
	}
	return count
}

func (w *world) serves(s surge.Snapshot, pod *corev1.Pod) bool {
	if !active(pod) || !ready(pod) || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return s.Deployment == nil || w.available(pod)
}

// homeOf is the ReplicaSet that a pod belongs to, or is on its way back to; empty
// while it is detached.
func homeOf(pod *corev1.Pod) types.UID {
	if !surge.Detached(pod) {
		if ref := metav1.GetControllerOf(pod); ref != nil {
			return ref.UID
		}
		return "none"
	}
	var record surge.Record
	if err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.SurgeAnnotation]), &record); err != nil || pod.Labels[hashLabel] != record.Hash {
		return ""
	}
	return record.ReplicaSet.UID
}
