package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

const maxUnanswered = 100

// RequestWithdrawal withdraws one of our EvictionRequests.
type RequestWithdrawal struct {
	// Request is as it was observed, Withdrawn as it is to be written.
	Request, Withdrawn *lifecyclev1alpha1.EvictionRequest
	// Unanswered is the pod for which no responder answered; nil if that is not the cause.
	Unanswered *corev1.Pod
	Events     []event.Event
}

// Write returns the key of the write in Snapshot.Refused.
func (w RequestWithdrawal) Write() Write {
	target, _ := evictionrequest.TargetOf(w.Request)
	return Write{Kind: WriteRequestWithdrawal, Pod: target.UID}
}

// withdraw collects our Evacuations and EvictionRequests that no maintenance in Drain wants.
func (t *targeted) withdraw(o *outcome) {
	for i := range o.pods {
		p, leaves := &o.pods[i], o.leaves(i)
		if p.asked && !leaves {
			o.withdrawEvacuation(p.object, p.evacuation)
		}
		switch {
		case p.requestState != evictionrequest.Asked:
		case !leaves, p.asked:
			t.withdrawRequest(o, p.request, nil)
		case t.unanswered(p):
			t.withdrawRequest(o, p.request, p.object)
		}
	}
	others := o.finished
	if len(o.drains) == 0 {
		others = t.Pods[o.name()]
	}
	for _, one := range others {
		if ours(one.Evacuation) {
			o.withdrawEvacuation(one.Object, one.Evacuation)
		}
		if one.requestState() == evictionrequest.Asked {
			t.withdrawRequest(o, one.Request, nil)
		}
	}
	slices.Sort(o.forbidden)
	slices.SortFunc(o.withdrawals, func(a, b *v1alpha1.Evacuation) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(o.withdrawRequests, func(a, b RequestWithdrawal) int {
		return cmp.Or(cmp.Compare(a.Request.Namespace, b.Request.Namespace), cmp.Compare(a.Request.Name, b.Request.Name))
	})
	// Only the ledger leads back to a node that no maintenance selects, so it goes last.
	if len(o.selections) == 0 && len(o.withdrawals)+len(o.withdrawRequests) > 0 {
		o.cordon.Change, o.cordon.Events = nil, nil
	}
}

func (o *outcome) withdrawEvacuation(object *corev1.Pod, evacuation *v1alpha1.Evacuation) {
	if evacuation.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid {
		o.forbidden = append(o.forbidden, object.Namespace+"/"+object.Name)
		return
	}
	o.withdrawals = append(o.withdrawals, evacuation)
}

func (t *targeted) withdrawRequest(o *outcome, request *lifecyclev1alpha1.EvictionRequest, unanswered *corev1.Pod) {
	o.withdrawRequests = append(o.withdrawRequests, RequestWithdrawal{
		Request: request, Withdrawn: evictionrequest.WithdrawnAt(request, t.Requester.Now, unanswered != nil), Unanswered: unanswered,
	})
}

func (t *targeted) blockRefused(o *outcome) {
	if refusal, refused := t.Refused[Write{Kind: WriteCordon, Node: o.name()}]; refused && o.cordon.Change != nil {
		o.refusals = append(o.refusals, blocker.CordonRefused(o.object, refusal))
	}
	if refusal, refused := t.Refused[Write{Kind: WriteDrainRecord, Node: o.name()}]; refused && o.lock.Change != nil {
		o.refusals = append(o.refusals, blocker.RecordRefused(o.object, refusal))
	}
	for _, evacuation := range o.withdrawals {
		if refusal, refused := t.Refused[Write{Kind: WriteWithdrawal, Pod: evacuation.Spec.PodRef.UID}]; refused {
			o.refusals = append(o.refusals, blocker.WithdrawalRefused("Evacuation", evacuation, refusal))
		}
	}
	for _, w := range o.withdrawRequests {
		if refusal, refused := t.Refused[w.Write()]; refused {
			o.refusals = append(o.refusals, blocker.WithdrawalRefused("EvictionRequest", w.Request, refusal))
		}
	}
}
