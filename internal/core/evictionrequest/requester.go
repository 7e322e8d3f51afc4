package evictionrequest

import (
	"cmp"
	"maps"
	"slices"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requesters returns the requesters of an Eviction: existing before deleted, active before
// withdrawn, oldest first, up to the limit of the API.
func requesters(before []lifecyclev1alpha1.Requester, requests []*lifecyclev1alpha1.EvictionRequest) []lifecyclev1alpha1.Requester {
	var all []lifecyclev1alpha1.Requester
	named := map[string]bool{}
	add := func(name string, intent lifecyclev1alpha1.RequesterIntent) {
		if !named[name] && len(all) < maxRequesters {
			named[name] = true
			all = append(all, lifecyclev1alpha1.Requester{Name: name, Intent: intent})
		}
	}
	for _, request := range byRelevance(requests) {
		intent := lifecyclev1alpha1.RequesterIntentWithdrawn
		if asks(request) {
			intent = lifecyclev1alpha1.RequesterIntentEviction
		}
		add(request.Spec.Requester, intent)
	}
	for _, one := range before {
		add(one.Name, lifecyclev1alpha1.RequesterIntentWithdrawn)
	}
	return all
}

func byRelevance(requests []*lifecyclev1alpha1.EvictionRequest) []*lifecyclev1alpha1.EvictionRequest {
	return slices.SortedStableFunc(slices.Values(requests), func(a, b *lifecyclev1alpha1.EvictionRequest) int {
		return cmp.Or(cmp.Compare(relevance(a), relevance(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

func relevance(request *lifecyclev1alpha1.EvictionRequest) int {
	switch {
	case asks(request):
		return 0
	case request.DeletionTimestamp == nil:
		return 1
	}
	return 2
}

// creation returns the next Eviction of the target. Others are created at the same time.
func (s subject) creation(others []*lifecyclev1alpha1.Eviction) *lifecyclev1alpha1.Eviction {
	e := &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.requests[0].Namespace, Name: nextName(s.target.Name, slices.Concat(s.Evictions, s.Strangers, others))},
		Spec: lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{
			Pod: &lifecyclev1alpha1.EvictionPodReference{Name: s.target.Name, UID: s.target.UID},
		}},
	}
	status := lifecyclev1alpha1.EvictionStatus{Requesters: requesters(nil, s.requests), TargetResponders: responders(s.pod)}
	e.Labels = participants(status)
	e.OwnerReferences = s.owners(nil)
	return e
}

// whole returns the Eviction with missing labels and owners; nil if it lacks none.
func (s subject) whole(e *lifecyclev1alpha1.Eviction, status lifecyclev1alpha1.EvictionStatus) *lifecyclev1alpha1.Eviction {
	labels := participants(status)
	owners := s.owners(e.OwnerReferences)
	lacking := len(owners) > len(e.OwnerReferences)
	for key, role := range labels {
		lacking = lacking || e.Labels[key] != role
	}
	if !lacking || e.DeletionTimestamp != nil {
		return nil
	}
	whole := e.DeepCopy()
	if whole.Labels == nil {
		whole.Labels = map[string]string{}
	}
	maps.Copy(whole.Labels, labels)
	whole.OwnerReferences = owners
	return whole
}

// participants returns the labels by which requesters and responders find an Eviction.
func participants(status lifecyclev1alpha1.EvictionStatus) map[string]string {
	labels := map[string]string{}
	for _, one := range status.Requesters {
		labels[one.Name] = string(lifecyclev1alpha1.EvictionParticipantRoleRequester)
	}
	for _, one := range status.TargetResponders {
		role := lifecyclev1alpha1.EvictionParticipantRoleResponder
		if labels[one.Name] != "" {
			role = lifecyclev1alpha1.EvictionParticipantRoleRequesterResponder
		}
		labels[one.Name] = string(role)
	}
	return labels
}

// owners returns the existing owners and the missing requests, up to the limit.
func (s subject) owners(before []metav1.OwnerReference) []metav1.OwnerReference {
	owners := slices.Clone(before)
	for _, request := range byRelevance(s.requests) {
		named := slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return owner.UID == request.UID })
		if request.DeletionTimestamp != nil || named || len(owners) >= maxRequesters {
			continue
		}
		owners = append(owners, metav1.OwnerReference{
			APIVersion: lifecyclev1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest", Name: request.Name, UID: request.UID,
		})
	}
	return owners
}
