package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/right"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// lookEvery is the interval of checking the rules of the manager's account, reviewEvery that
	// of reviewing its rights although they did not change: some rights come from no rule.
	lookEvery, reviewEvery = 30 * time.Second, 10 * time.Minute
	// grantedWithin bounds the wait for rights at the start: the API server notices a new role
	// with a delay.
	grantedWithin = 3 * time.Second
)

// errRightsChanged ends a manager that has to run other parts.
var errRightsChanged = errors.New("the account has the rights for other parts of the manager now")

// rights knows which parts of the manager may run. A cache or a controller whose watch is
// forbidden would hold up all others, so such a part is not added in the first place.
type rights struct {
	namespace string
	needs     right.Rights
	asks      authorizationclient.SelfSubjectAccessReviewInterface
	rules     authorizationclient.SelfSubjectRulesReviewInterface
	groups    discovery.ServerGroupsInterface
	emit      func(...event.Event)
	missing   *prometheus.GaugeVec
	// began lists the rights that were missing at the start, lacking those that are missing now.
	began   right.Rights
	lacking atomic.Pointer[right.Rights]
}

// reviewRights returns the rights of the account that a config is for.
//
// Errors: the API server does not answer.
func reviewRights(ctx context.Context, config *rest.Config, f *flags) (*rights, error) {
	needs, err := f.needs()
	if err != nil {
		return nil, err
	}
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client that discovers APIs: %w", err)
	}
	r := &rights{
		namespace: f.namespace, needs: needs, asks: reviews.SelfSubjectAccessReviews(), rules: reviews.SelfSubjectRulesReviews(),
		groups: groups, emit: func(...event.Event) {},
		missing: kube.Register(crmetrics.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ebbtide_missing_rights",
			Help: "How many rights the account lacks for a part of the manager that is switched on. A part that lacks any does not run.",
		}, []string{"part"})),
	}
	begin := time.Now()
	err = wait.PollUntilContextCancel(ctx, grantedWithin/10, true, func(ctx context.Context) (over bool, err error) {
		r.began, err = r.review(ctx)
		return len(r.began) == 0 || time.Since(begin) > grantedWithin, err
	})
	if err != nil {
		return nil, fmt.Errorf("review the rights of the manager's account: %w", err)
	}
	r.note(r.began)
	return r, nil
}

// needs returns the rights of the parts that are switched on, as the roles of the chart give them.
func (f *flags) needs() (right.Rights, error) {
	needs := right.Rights{}
	for part, file := range f.roles() {
		objects, err := charts.Role(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			var role rbacv1.Role // A ClusterRole has the same rules.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				return nil, fmt.Errorf("read role %s: %w", file, err)
			}
			if role.Namespace == "release" {
				role.Namespace = f.namespace
			}
			needs[part] = append(needs[part], right.Of(role.Namespace, role.Rules...)...)
		}
	}
	return needs, nil
}

// roles returns the files of the chart with the roles of the parts that are switched on.
func (f *flags) roles() map[right.Part]string {
	files := map[right.Part]string{right.Core: "role"}
	if f.rollouts {
		files[right.Rollouts] = "role-rollouts"
	}
	if f.machines {
		files[right.Machines] = "role-machines"
	}
	if f.evictionRequests != evictionrequest.ModeOff {
		files[right.EvictionRequests] = "role-eviction-requests"
	}
	for part, name := range bridged {
		if f.bridges.Has(name) {
			files[part] = "role-bridge-" + string(name)
		}
	}
	return files
}

// bridged are the parts that act for other controllers.
var bridged = map[right.Part]bridge.Name{right.ClusterAPI: bridge.ClusterAPI, right.OpenShift: bridge.OpenShift}

// without switches parts off.
func (f *flags) without(parts []right.Part) {
	for _, part := range parts {
		switch part {
		case right.Rollouts:
			f.rollouts = false
		case right.Machines:
			f.machines = false
		case right.EvictionRequests:
			f.evictionRequests = evictionrequest.ModeOff
		case right.ClusterAPI, right.OpenShift:
			f.bridges = slices.DeleteFunc(slices.Clone(f.bridges), func(b bridge.Name) bool { return b == bridged[part] })
		}
	}
}

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectaccessreviews,verbs=create

// reviewing is the right without which nothing is known of the others.
var reviewing = right.Right{Verb: "create", Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}

// review returns what the account lacks now.
//
// Errors: the API server does not answer.
func (r *rights) review(ctx context.Context) (right.Rights, error) {
	list, err := r.groups.ServerGroups()
	if err != nil {
		return nil, err
	}
	needs := r.needs.Served(func(group string) bool {
		return slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	})
	granted := map[right.Right]bool{}
	err = needs.Each(func(one right.Right) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: one.Attributes()}}
		answer, err := r.asks.Create(ctx, review, metav1.CreateOptions{})
		if err == nil {
			granted[one] = answer.Status.Allowed
		}
		return err
	})
	if apierrors.IsForbidden(err) {
		unknown := right.Rights{}
		for part := range needs {
			unknown[part] = []right.Right{reviewing}
		}
		return unknown, nil
	}
	return needs.Lacking(func(one right.Right) bool { return granted[one] }), err
}

// note reports missing rights once.
func (r *rights) note(lacking right.Rights) {
	before := r.lacking.Swap(&lacking)
	for _, part := range r.needs.Parts() {
		r.missing.WithLabelValues(string(part)).Set(float64(len(lacking[part])))
		words := lacking.Message(part)
		if words == "" || before != nil && before.Message(part) == words {
			continue
		}
		ctrl.Log.Error(nil, "The manager's account lacks rights", "part", part, "rights", words)
		r.emit(event.RightsMissing(r.namespace, kube.LeaderLease, string(part), words))
	}
}

// watch reviews the rights again when they may have changed.
//
// Errors: errRightsChanged.
func (r *rights) watch(ctx context.Context, emit func(...event.Event)) error {
	r.emit = emit
	for _, part := range r.began.Parts() {
		r.emit(event.RightsMissing(r.namespace, kube.LeaderLease, string(part), r.began.Message(part)))
	}
	var basis string
	var reviewed time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
		// After a failed check they may have changed.
		now, err := r.basis(ctx)
		if err == nil && now == basis && time.Since(reviewed) < reviewEvery {
			continue
		}
		lacking, err := r.review(ctx)
		if err != nil {
			// An unknown answer changes nothing.
			ctrl.Log.V(1).Info("The rights of the manager's account are not known", "reason", err.Error())
			continue
		}
		basis, reviewed = now, time.Now()
		r.note(lacking)
		if !slices.Equal(lacking.Optional(), r.began.Optional()) {
			return errRightsChanged
		}
	}
}

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectrulesreviews,verbs=create

// basis returns the facts that rights follow from, in a fixed order: the API groups that are served
// and the rules of the account.
//
// Errors: the API server does not respond or rejects the request.
func (r *rights) basis(ctx context.Context) (string, error) {
	groups, err := r.groups.ServerGroups()
	if err != nil {
		return "", err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: r.namespace}}
	if review, err = r.rules.Create(ctx, review, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	var lines []string
	for _, group := range groups.Groups {
		lines = append(lines, group.Name)
	}
	for _, rule := range review.Status.ResourceRules {
		lines = append(lines, rule.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// ready is a check of /readyz: a manager without its core rights is not.
func (r *rights) ready(*http.Request) error {
	if words := r.lacking.Load().Message(right.Core); words != "" {
		return fmt.Errorf("the manager's account may not %s", words)
	}
	return nil
}
