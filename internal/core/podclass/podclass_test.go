package podclass_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// checkProblems wants problems with these labels and annotations, and passes their messages on.
func checkProblems(t *testing.T, problems []podclass.Problem, want ...string) {
	t.Helper()
	var keys []string
	for _, p := range problems {
		keys = append(keys, p.Key)
		golden.Message(t, p.Message)
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func controlledBy(apiVersion, kind string, controller bool) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "bystander"},
		{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: &controller},
	}}}
}

func TestType(t *testing.T) {
	mirror := controlledBy("v1", "Node", true)
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	forged, made := &corev1.Pod{}, &corev1.Pod{}
	forged.Annotations = mirror.Annotations
	podclass.MakeMirror(made, "uid")
	mirrorOfDaemonSet := controlledBy("apps/v1", "DaemonSet", true)
	mirrorOfDaemonSet.Annotations = mirror.Annotations

	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want v1alpha1.PodType
	}{
		"bare pod":                              {&corev1.Pod{}, v1alpha1.PodTypeDefault},
		"replica":                               {controlledBy("apps/v1", "ReplicaSet", true), v1alpha1.PodTypeDefault},
		"DaemonSet pod":                         {controlledBy("apps/v1", "DaemonSet", true), v1alpha1.PodTypeDaemonSet},
		"DaemonSet pod of another version":      {controlledBy("apps/v2", "DaemonSet", true), v1alpha1.PodTypeDaemonSet},
		"somebody else's kind called DaemonSet": {controlledBy("apps.kruise.io/v1", "DaemonSet", true), v1alpha1.PodTypeDefault},
		"owned but not controlled":              {controlledBy("apps/v1", "DaemonSet", false), v1alpha1.PodTypeDefault},
		"mirror pod":                            {mirror, v1alpha1.PodTypeStatic},
		"mirror pod that we make":               {made, v1alpha1.PodTypeStatic},
		"somebody's pod with its annotation":    {forged, v1alpha1.PodTypeDefault},
		"DaemonSet pod with its annotation":     {mirrorOfDaemonSet, v1alpha1.PodTypeDaemonSet},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podclass.Type(test.pod); got != test.want {
				t.Errorf("Type() = %s, want %s", got, test.want)
			}
		})
	}
}

func TestPriority(t *testing.T) {
	if got := podclass.Priority(&corev1.Pod{}); got != 0 {
		t.Errorf("a pod without priority has %d, want 0", got)
	}
	priority := int32(-7)
	if got := podclass.Priority(&corev1.Pod{Spec: corev1.PodSpec{Priority: &priority}}); got != -7 {
		t.Errorf("Priority() = %d, want -7", got)
	}
}

func TestTerminal(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{
		"":                  false,
		corev1.PodPending:   false,
		corev1.PodRunning:   false,
		corev1.PodUnknown:   false,
		corev1.PodSucceeded: true,
		corev1.PodFailed:    true,
	} {
		if got := podclass.Terminal(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("Terminal(%q) = %v, want %v", phase, got, want)
		}
	}
}

func TestDrainLabel(t *testing.T) {
	for name, test := range map[string]struct {
		labels   map[string]string
		want     v1alpha1.DrainBehavior
		problems []string
	}{
		"no label":               {nil, v1alpha1.DrainBehaviorDrain, nil},
		"skip":                   {map[string]string{v1alpha1.DrainLabel: "skip"}, v1alpha1.DrainBehaviorSkip, nil},
		"skip in capitals":       {map[string]string{v1alpha1.DrainLabel: "SKIP"}, v1alpha1.DrainBehaviorSkip, nil},
		"wait-completed":         {map[string]string{v1alpha1.DrainLabel: "wait-completed"}, v1alpha1.DrainBehaviorWaitCompleted, nil},
		"WaitCompleted":          {map[string]string{v1alpha1.DrainLabel: "WaitCompleted"}, v1alpha1.DrainBehaviorWaitCompleted, nil},
		"another value":          {map[string]string{v1alpha1.DrainLabel: "later"}, v1alpha1.DrainBehaviorDrain, []string{v1alpha1.DrainLabel}},
		"an empty value":         {map[string]string{v1alpha1.DrainLabel: ""}, v1alpha1.DrainBehaviorDrain, []string{v1alpha1.DrainLabel}},
		"somebody else's labels": {map[string]string{"app": "skip"}, v1alpha1.DrainBehaviorDrain, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := podclass.DrainLabel(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}})
			if got != test.want {
				t.Errorf("DrainLabel() = %s, want %s", got, test.want)
			}
			checkProblems(t, problems, test.problems...)
		})
	}
}

func TestEvacuatorsOfOtherAnnotations(t *testing.T) {
	other := map[string]string{"other": "10000/controller"}
	if got, problems := podclass.Evacuators(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: other}}); len(got)+len(problems) > 0 {
		t.Errorf("got %v and %v, want nothing", got, problems)
	}
}

func TestEvacuators(t *testing.T) {
	const prefix = "evacuation.coordination.k8s.io/priority_"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []v1alpha1.Evacuator
		problems    []string
	}{
		"highest first, ties by class": {
			annotations: map[string]string{
				prefix + "deployment.apps.k8s.io": "10000/controller",
				prefix + "b.example.com":          "500",
				prefix + "a.example.com":          "500/",
				prefix + "c.example.com":          "100000/the role/of it",
				prefix + "d.example.com":          "0/" + strings.Repeat("ö", 63),
			},
			want: []v1alpha1.Evacuator{
				{EvacuatorClass: "c.example.com", Priority: 100000, Role: "the role/of it"},
				{EvacuatorClass: "deployment.apps.k8s.io", Priority: 10000, Role: "controller"},
				{EvacuatorClass: "a.example.com", Priority: 500},
				{EvacuatorClass: "b.example.com", Priority: 500},
				{EvacuatorClass: "d.example.com", Role: strings.Repeat("ö", 63)},
			},
		},
		"malformed ones are left out and named": {
			annotations: map[string]string{
				prefix + "a.example.com": "",
				prefix + "b.example.com": "100001/controller",
				prefix + "c.example.com": "-1",
				prefix + "d.example.com": "+1",
				prefix + "e.example.com": " 1",
				prefix + "f.example.com": "1e3",
				prefix + "g.example.com": "1/" + strings.Repeat("r", 64),
				prefix + "h.example.com": "0",
				prefix + "":              "1",
				prefix + "Not_A_Domain":  "1",
			},
			want: []v1alpha1.Evacuator{{EvacuatorClass: "h.example.com"}},
			problems: []string{
				prefix, prefix + "Not_A_Domain", prefix + "a.example.com", prefix + "b.example.com", prefix + "c.example.com",
				prefix + "d.example.com", prefix + "e.example.com", prefix + "f.example.com", prefix + "g.example.com",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := podclass.Evacuators(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("evacuators (-want +got):\n%s", diff)
			}
			checkProblems(t, problems, test.problems...)
		})
	}
}

func TestEvacuatorsPastTheLimitAreTheLowest(t *testing.T) {
	annotations := map[string]string{}
	for i := range v1alpha1.MaxEvacuators + 2 {
		annotations[fmt.Sprintf("%s%03d.example.com", v1alpha1.EvacuatorAnnotationPrefix, i)] = "7"
	}
	got, problems := podclass.Evacuators(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
	if len(got) != v1alpha1.MaxEvacuators || got[99].EvacuatorClass != "099.example.com" {
		t.Errorf("got %d evacuators ending with %v, want the first 100", len(got), got[len(got)-1])
	}
	checkProblems(t, problems, v1alpha1.EvacuatorAnnotationPrefix+"100.example.com", v1alpha1.EvacuatorAnnotationPrefix+"101.example.com")
}

// Nobody annotates a mirror pod: the kubelet makes it from a file.
func TestStaticPodsHaveTheKubeletForAnEvacuator(t *testing.T) {
	mirror := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.EvacuatorAnnotationPrefix + "storage.example.com": "20000/first",
	}}}
	podclass.MakeMirror(mirror, "node")
	got, problems := podclass.Evacuators(mirror)
	want := []v1alpha1.Evacuator{
		{EvacuatorClass: "storage.example.com", Priority: 20000, Role: "first"},
		{EvacuatorClass: "kubelet.k8s.io", Priority: 10000, Role: "controller"},
	}
	if !slices.Equal(got, want) || len(problems) > 0 {
		t.Errorf("evacuators of a static pod are %+v (%v), want %+v", got, problems, want)
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	for want, sources := range map[string][]corev1.VolumeSource{
		"emptyDir":  {{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		"ephemeral": {{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		"": {
			{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
			{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
			{HostPath: &corev1.HostPathVolumeSource{}},
		},
	} {
		for _, source := range sources {
			if got := podclass.Temporary(&corev1.Volume{VolumeSource: source}); got != want {
				t.Errorf("%+v is %q, want %q", source, got, want)
			}
		}
	}
}
