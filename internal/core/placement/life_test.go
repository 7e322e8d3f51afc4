package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/placement"
)

func TestPodsMakeRoomAndTakeIt(t *testing.T) {
	t.Parallel()
	half := func(name, node string) *corev1.Pod { return newPod(name, node, "app=web", asking("cpu: 2")) }
	e := placement.New(placement.World{
		Nodes: nodes(newNode("a", ""), newNode("b", "")),
		Pods:  pods(half("1", "a"), half("2", "a"), half("3", "b")),
	})
	e.Cordon("a")
	wantPlace(t, e, half("1", "a"), "b")
	wantPlace(t, e, half("2", "a"), "")
	// What leaves a cordoned node makes no room for others.
	e.Remove(half("1", "a"))
	wantPlace(t, e, half("2", "a"), "")
	e.Remove(half("3", "b"))
	wantPlace(t, e, half("2", "a"), "b")
	wantPlace(t, e, half("3", "b"), "")
	// The original is gone, so this is the copy.
	e.Remove(half("1", "a"))
	wantPlace(t, e, half("3", "b"), "b")
	// Nobody knows this one.
	e.Remove(half("4", "b"))
	wantPlace(t, e, half("4", "b"), "")
}

func TestPodsThatAreEqualSpreadOverTheNodes(t *testing.T) {
	t.Parallel()
	e := placement.New(placement.World{Nodes: nodes(newNode("a", ""), newNode("b", ""), newNode("c", ""))})
	for _, want := range []string{"a", "b", "c", "a", "b", "c", "a"} {
		wantPlace(t, e, newPod("new", "", "", asking("cpu: 100m")), want)
	}
}

func TestCopiesCountForOthers(t *testing.T) {
	t.Parallel()
	apart := func(name, node string) *corev1.Pod {
		return newPod(name, node, "app=web", affine("podAntiAffinity", "app=web", corev1.LabelHostname))
	}
	e := placement.New(placement.World{Nodes: nodes(newNode("a", ""), newNode("b", ""), newNode("c", "")), Pods: pods(apart("1", "a"))})
	e.Cordon("a")
	wantPlace(t, e, apart("1", "a"), "b")
	wantPlace(t, e, apart("2", ""), "c")
	wantPlace(t, e, apart("3", ""), "")
	e.Remove(apart("2", ""))
	wantPlace(t, e, apart("3", ""), "c")
}

func TestAVolumeIsBoundOnce(t *testing.T) {
	t.Parallel()
	e := placement.New(placement.World{
		Nodes: nodes(newNode("b1", "zone=b")), Classes: classes(local), Volumes: volumes(spare),
		Claims: claims(waiting, "{metadata: {name: more}, spec: {storageClassName: local, resources: {requests: {storage: 5Gi}}, accessModes: [ReadWriteOnce]}}"),
	})
	more := newPod("2", "", "", "volumes: [{name: data, persistentVolumeClaim: {claimName: more}}]")
	wantPlace(t, e, newPod("1", "", "", uses), "b1")
	wantPlace(t, e, newPod("1b", "", "", uses), "b1")
	wantPlace(t, e, more, "")
}

func TestASpreadFollowsThePods(t *testing.T) {
	t.Parallel()
	web := func(name string) *corev1.Pod { return newPod(name, "", "app=web", spread(1, "zone")) }
	e := placement.New(placement.World{Nodes: nodes(newNode("a", "zone=a"), newNode("b", "zone=b", offers("pods", "2")))})
	for _, want := range []string{"a", "b", "a", "b", "a"} {
		wantPlace(t, e, web(want), want)
	}
	wantPlace(t, e, web("6"), "")
	e.Remove(web("b"))
	wantPlace(t, e, web("6"), "b")
	e.Remove(web("a"))
	e.Remove(web("a"))
	wantPlace(t, e, web("7"), "a")
}

func TestPodsWithoutRoomAreRetriedWithLaterNodes(t *testing.T) {
	t.Parallel()
	db := newPod("db", "", "app=db", "nodeSelector: {zone: b}")
	near := newPod("near", "", "app=near", affine("podAffinity", "app=db", "zone"))
	e := placement.New(placement.World{Nodes: nodes(newNode("a", "zone=a"), newNode("b", "zone=b")), Pods: pods(
		newPod("far", "a", "app=far", affine("podAntiAffinity", "app=web", "zone")), newPod("far2", "b", "app=far", affine("podAntiAffinity", "app=web", "zone")),
	)})
	wantPlace(t, e, near, "")
	wantPlace(t, e, db, "b")
	wantPlace(t, e, near, "b")
	wantPlace(t, e, newPod("web", "", "app=web", "{}"), "")
	e.Cordon("a")
	e.Remove(newPod("far2", "", "", "{}"))
	wantPlace(t, e, newPod("web", "", "app=web", "{}"), "b")
}

func TestTheLastCopyGoesFirst(t *testing.T) {
	t.Parallel()
	web := newPod("web", "", "app=web", asking("cpu: 4"))
	e := placement.New(placement.World{Nodes: nodes(newNode("a", ""), newNode("b", ""))})
	wantPlace(t, e, web, "a")
	wantPlace(t, e, web, "b")
	e.Remove(web)
	wantPlace(t, e, newPod("other", "", "", asking("cpu: 4")), "b")
}
