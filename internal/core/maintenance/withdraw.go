package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// withdraw finds the Evacuations of a node that we asked for and that no maintenance in Drain
// asks for any more; where nobody drains, that is all of them.
func (t *targeted) withdraw(o *outcome) {
	for i := range o.pods {
		p := &o.pods[i]
		if p.asked && !o.leaves(i) {
			o.withdrawOne(p.object, p.evacuation)
		}
		t.withdrawRequest(o, i)
	}
	others := o.finished
	if len(o.drains) == 0 {
		others = t.Pods[o.name()]
	}
	for _, one := range others {
		if ours(one.Evacuation) {
			o.withdrawOne(one.Object, one.Evacuation)
		}
		if one.standing() == evictionrequest.Asked {
			t.withdrawAsked(o, one.Request, nil)
		}
	}
	slices.Sort(o.forbidden)
	slices.SortFunc(o.withdraw, func(a, b *v1alpha1.Evacuation) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	// Only the ledger leads back to a node that no maintenance selects, so it goes
	// after everything else is done there.
	if len(o.selections) == 0 && len(o.withdraw)+len(o.withdrawRequests) > 0 {
		o.cordon.Change, o.cordon.Events = nil, nil
	}
}

func (o *outcome) withdrawOne(object *corev1.Pod, evacuation *v1alpha1.Evacuation) {
	if evacuation.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid {
		o.forbidden = append(o.forbidden, object.Namespace+"/"+object.Name)
		return
	}
	o.withdraw = append(o.withdraw, evacuation)
}

// refuse says which of the writes that are wanted for the node itself are refused.
func (t *targeted) refuse(o *outcome) {
	if len(t.Refused) == 0 {
		return
	}
	if refusal, refused := t.Refused[Write{Kind: WriteCordon, Node: o.name()}]; refused && o.cordon.Change != nil {
		o.refusals = append(o.refusals, blocker.CordonRefused(o.object, refusal))
	}
	if refusal, refused := t.Refused[Write{Kind: WriteDrainRecord, Node: o.name()}]; refused && o.lock.Change != nil {
		o.refusals = append(o.refusals, blocker.RecordRefused(o.object, refusal))
	}
	for _, evacuation := range o.withdraw {
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
