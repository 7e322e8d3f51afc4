package evictionrequest_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

type translation = evictionrequest.Translation

// translated is a pod with a responder whose Evacuation somebody has asked for at noon, where
// requests are answered; changed as it is said.
func translated(changes ...func(*translation)) translation {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "5d2f"}}
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
	t := translation{
		Prospect:   evictionrequest.Prospect{Served: true, Able: true, Now: noon},
		Evacuation: evacuation.New(pod, v1alpha1.InstigatorFinalizerPrefix+"descheduler.example.com", nil), Pod: pod,
	}
	t.Evacuation.CreationTimestamp = metav1.NewTime(noon)
	for _, change := range changes {
		change(&t)
	}
	return t
}

func isAsked(ago time.Duration) func(*translation) {
	return func(t *translation) {
		t.Request = evictionrequest.Evacuations.New(t.Pod)
		t.Request.CreationTimestamp, t.Request.Generation = metav1.NewTime(noon.Add(-ago)), 1
	}
}

func isAnswered(t *translation) {
	isAsked(0)(t)
	t.Request.Status.ObservedGeneration = new(int64(1))
}

func hasFailed(reason string) func(*translation) {
	return func(t *translation) {
		isAnswered(t)
		t.Request.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: reason, Message: "So it is."}}
	}
}

func isWithdrawn(unanswered bool) func(*translation) {
	return func(t *translation) {
		isAsked(0)(t)
		t.Request = evictionrequest.WithdrawnAt(t.Request, noon, unanswered)
	}
}

// turnIs has a responder have its turn in the Eviction.
func turnIs(name, says string) func(*translation) {
	return func(t *translation) {
		isAnswered(t)
		t.Eviction = &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "pod-1-web-0"}}
		t.Eviction.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: name, State: lifecyclev1alpha1.ResponderStateActive}}
		t.Eviction.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: name, StartTime: at(0), ExpectedCompletionTime: at(time.Hour)}}
		if says != "" {
			t.Eviction.Status.Responders[0].Message = &says
		}
	}
}

func isOver(t *translation) {
	turnIs("example.com/leader", "")(t)
	t.Eviction.Status.Conditions = []metav1.Condition{{Type: "TargetEvicted", Status: metav1.ConditionTrue}}
}

func instigators(names ...string) func(*translation) {
	return func(t *translation) { t.Evacuation.Finalizers = names }
}

func saysRequested(is metav1.ConditionStatus) func(*translation) {
	return func(t *translation) {
		t.Evacuation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionEvictionRequested, Status: is}}
	}
}

const awaited = "Awaited"

// translations are what is so, what the Evacuation knows of the responders then, and what
// becomes of its request.
var translations = map[string]struct {
	t        translation
	phase    string
	disposal string
}{
	"nobody has asked them": {translated(), awaited + " 5s", "made"},
	"they cannot be asked for long": {
		translated(func(t *translation) { t.Prospect.Now = noon.Add(5 * time.Second) }),
		awaited + ": The responders of pod web-0 are to be asked by EvictionRequest evacuation-5d2f, which is not there yet: the events of the pod say why.", "made",
	},
	"nobody has answered": {translated(isAsked(10 * time.Second)), awaited + " 20s", "kept for 20s"},
	"Ebbtide answers":     {translated(isAsked(time.Hour), func(t *translation) { t.Prospect.Acting = true }), awaited, "kept"},
	"nobody answers":      {translated(isAsked(30 * time.Second)), awaited, "withdrawn as unanswered"},
	"another manager had to answer": {
		translated(isAsked(time.Hour), func(t *translation) { t.Prospect.Since = noon.Add(-10 * time.Second) }), awaited + " 20s", "kept for 20s",
	},
	"nobody has answered another one": {
		translated(func(t *translation) { t.Prospect.Able = false }),
		"Responded/Unanswered: Nobody answers EvictionRequests: pod web-0 is evacuated without its responders.; EvictionRequestUnanswered", "kept",
	},
	"it was withdrawn because nobody answers": {
		translated(isWithdrawn(true)),
		"Responded/Unanswered: Nobody answers EvictionRequests: pod web-0 is evacuated without its responders.; EvictionRequestUnanswered", "kept for 1m0s",
	},
	"it was withdrawn": {
		translated(isWithdrawn(false)),
		awaited + ": The responders of pod web-0 are asked again when EvictionRequest evacuation-5d2f is gone, which was withdrawn.", "kept for 1m0s",
	},
	"it is not known":                {translated(func(t *translation) { t.Prospect = evictionrequest.Prospect{Unknown: "Not read yet."} }), awaited + ": Not read yet.", "kept"},
	"it is not known, and was":       {translated(saysRequested("True"), func(t *translation) { t.Prospect = evictionrequest.Prospect{Unknown: "Not read yet."} }), awaited, "kept"},
	"nobody serves requests":         {translated(func(t *translation) { t.Prospect = evictionrequest.Prospect{} }), "Responded/NotServed: EvictionRequests are not served: pod web-0 is evacuated without its responders.", "kept"},
	"they are asked no more":         {translated(saysRequested("False")), awaited + " 5s", "kept"},
	"it has been answered":           {translated(isAnswered), awaited, "kept"},
	"it is the turn of one":          {translated(turnIs("example.com/leader", "")), "Responding/ResponderActive: It is the turn of responder example.com/leader in Eviction pod-1-web-0.", "kept"},
	"one says something":             {translated(turnIs("example.com/leader", "saving\x1b[2J\nmore")), "Responding/ResponderActive: It is the turn of responder example.com/leader in Eviction pod-1-web-0. Says saving [2J more", "kept"},
	"it is the evictor's turn":       {translated(turnIs(evictionrequest.DefaultEvictor, "")), "Responded/RespondersDone: The responders of pod web-0 have had their turns in Eviction pod-1-web-0.", "kept"},
	"the pod is about to be gone":    {translated(isOver), awaited, "kept"},
	"it has failed":                  {translated(hasFailed("NoFurtherResponder")), "Responded/RequestFailed: Pod web-0 is evacuated without its responders: EvictionRequest evacuation-5d2f has failed, NoFurtherResponder: So it is.", "kept"},
	"it shares the end of another":   {translated(hasFailed("CanceledDueToNoRequesters")), awaited, "deleted"},
	"another has its name":           {translated(isAsked(0), func(t *translation) { t.Request.Spec.Requester = "example.com/mallory" }), "Responded/NameTaken: Pod web-0 is evacuated without its responders: something else has the name of EvictionRequest evacuation-5d2f.; EvictionRequestNameTaken", "kept"},
	"the Evacuation is gone":         {translated(isAnswered, func(t *translation) { t.Evacuation = nil }), "", "withdrawn"},
	"nobody asks any more":           {translated(isAnswered, instigators()), "", "withdrawn"},
	"a maintenance asks":             {translated(instigators(v1alpha1.NodeMaintenanceInstigator)), "", "kept"},
	"a maintenance asks as well":     {translated(isAnswered, instigators(v1alpha1.NodeMaintenanceInstigator, v1alpha1.EvictionInstigator)), "", "withdrawn"},
	"a responder of ours asks":       {translated(instigators(v1alpha1.LifecycleInstigator)), "", "kept"},
	"a responder of ours has a turn": {translated(isAnswered, instigators(v1alpha1.LifecycleInstigator, v1alpha1.EvictionInstigator)), awaited, "kept"},
	"the pod has no responders":      {translated(func(t *translation) { t.Pod.Spec.EvictionResponders = nil }), "", "kept"},
	"the pod terminates":             {translated(func(t *translation) { t.Pod.DeletionTimestamp = at(0) }), awaited + " 5s", "kept"},
	"the pod terminates as asked":    {translated(isAnswered, func(t *translation) { t.Pod.DeletionTimestamp = at(0) }), awaited, "kept"},
	"the pod has ended":              {translated(func(t *translation) { t.Pod.Status.Phase = corev1.PodFailed }), awaited + " 5s", "kept"},
	"the pod has ended as asked":     {translated(isAnswered, func(t *translation) { t.Pod.Status.Phase = corev1.PodFailed }), awaited, "kept"},
	"it is of another pod":           {translated(func(t *translation) { t.Evacuation.Spec.PodRef.UID = "6e3a" }), "", "kept"},
	"it has a name of its own":       {translated(func(t *translation) { t.Evacuation.Name = "mine" }), "", "kept"},
}

func TestAnEvacuationIsTranslated(t *testing.T) {
	t.Parallel()
	for name, test := range translations {
		if got := phaseOf(test.t.Responders()); got != test.phase {
			t.Errorf("%s: the Evacuation knows %q, want %q", name, got, test.phase)
		}
		if got := disposalOf(test.t.Disposal(nil)); got != test.disposal {
			t.Errorf("%s: the request is %s, want %s", name, got, test.disposal)
		}
	}
	gone := translated(isAnswered, func(t *translation) { t.Pod = nil })
	if got := disposalOf(gone.Disposal(new(time.Minute))); got != "deleted" {
		t.Errorf("a minute after the pod the request is %s, want deleted", got)
	}
}

func phaseOf(r evacuation.Responders) string {
	var b strings.Builder
	b.WriteString(string(r.Phase))
	if r.Reason != "" {
		b.WriteString("/" + r.Reason)
	}
	if r.Words != "" {
		b.WriteString(": " + r.Words)
	}
	if r.Says != "" {
		b.WriteString(" Says " + r.Says)
	}
	if r.RequeueAfter > 0 {
		b.WriteString(" " + r.RequeueAfter.String())
	}
	for _, e := range r.Events {
		b.WriteString("; " + e.Reason)
	}
	if r.Phase == evacuation.RespondersActive && (!r.Sign.Equal(noon) || !r.Finish.Equal(at(time.Hour))) {
		b.WriteString(" at another time")
	}
	return b.String()
}

func disposalOf(d evictionrequest.Disposal) string {
	switch {
	case d.Create != nil:
		return "made"
	case d.Delete:
		return "deleted"
	case d.Record != nil && evictionrequest.Unanswers(d.Record):
		return "withdrawn as unanswered"
	case d.Record != nil:
		return "withdrawn"
	case d.RequeueAfter > 0:
		return "kept for " + d.RequeueAfter.String()
	}
	return "kept"
}
