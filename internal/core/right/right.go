// Package right decides which parts of the manager run with the rights of its account. A part needs
// the rights of its role in the chart, and does not start if it lacks one. No other part stops for
// it. Core is always required.
package right

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Part is a part of the manager with its own role, also in labels and metrics.
type Part string

const (
	// Core drains nodes and answers the API server.
	Core Part = "core"
	// Rollouts reconciles NodeRollouts.
	Rollouts Part = "rollouts"
	// Machines reconciles Machines and Clusters of ebbtide.dev.
	Machines Part = "machines"
	// EvictionRequests answers and creates EvictionRequests.
	EvictionRequests Part = "eviction-requests"
	// ClusterAPI drains for the Machines of Cluster API.
	ClusterAPI Part = "cluster-api"
	// OpenShift drains for the Machines of OpenShift.
	OpenShift Part = "openshift"
)

var parts = []Part{Core, Rollouts, Machines, EvictionRequests, ClusterAPI, OpenShift}

// Right is one verb on one resource.
type Right struct {
	// Namespace is empty for all namespaces, Name for all objects.
	Namespace, Name, Verb, Group, Resource, Subresource string
}

// String returns the right in the syntax of kubectl auth can-i.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += "/" + r.Name
	}
	if r.Subresource != "" {
		text += " --subresource=" + r.Subresource
	}
	if r.Namespace != "" {
		text += " --namespace=" + r.Namespace
	}
	return text
}

// Attributes returns the right for an access review.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: r.Namespace, Name: r.Name, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
	}
}

// Of returns the rights of the rules of a role in a namespace, or in all if it is empty.
func Of(namespace string, rules ...rbacv1.PolicyRule) (rights []Right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, path := range rule.Resources {
				resource, subresource, _ := strings.Cut(path, "/")
				on := Right{Namespace: namespace, Group: group, Resource: resource, Subresource: subresource}
				rights = append(rights, on.each(rule.ResourceNames, rule.Verbs)...)
			}
		}
	}
	return rights
}

func (r Right) each(names, verbs []string) (rights []Right) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, r.Name = range names {
		for _, r.Verb = range verbs {
			rights = append(rights, r)
		}
	}
	return rights
}

// Rights are grouped by part.
type Rights map[Part][]Right

// Each calls do for each right in a fixed order until it fails.
func (r Rights) Each(do func(Right) error) error {
	done := map[Right]bool{}
	for _, part := range r.Parts() {
		for _, one := range r[part] {
			if done[one] {
				continue
			}
			done[one] = true
			if err := do(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// Served returns the rights of the parts whose API groups are all served, as other parts do not
// run. Core always runs.
func (r Rights) Served(is func(group string) bool) Rights {
	served := maps.Clone(r)
	maps.DeleteFunc(served, func(part Part, rights []Right) bool {
		return part != Core && slices.ContainsFunc(rights, func(one Right) bool { return !is(one.Group) })
	})
	return served
}

// Lacking returns the rights that an account does not have.
func (r Rights) Lacking(has func(Right) bool) Rights {
	lacking := Rights{}
	for part, rights := range r {
		if left := slices.DeleteFunc(slices.Clone(rights), has); len(left) > 0 {
			lacking[part] = left
		}
	}
	return lacking
}

// Lists reports whether a part lists a resource.
func (r Rights) Lists(part Part, group, resource string) bool {
	return slices.ContainsFunc(r[part], func(one Right) bool {
		return one.Verb == "list" && one.Group == group && one.Resource == resource && one.Subresource == ""
	})
}

// Parts returns the parts with rights.
func (r Rights) Parts() []Part {
	return slices.SortedFunc(maps.Keys(r), func(a, b Part) int { return cmp.Compare(slices.Index(parts, a), slices.Index(parts, b)) })
}

// Optional returns the parts that can be disabled.
func (r Rights) Optional() []Part {
	return slices.DeleteFunc(r.Parts(), func(p Part) bool { return p == Core })
}

const mostShown = 5

// Message lists the rights of a part.
func (r Rights) Message(part Part) string {
	var words []string
	for _, one := range r[part] {
		words = append(words, one.String())
	}
	if len(words) > mostShown {
		words = append(words[:mostShown], "…")
	}
	return strings.Join(words, ", ")
}

// Label returns the value of MissingRightsLabel for parts.
func Label(missing []Part) string { return strings.Join(Names(missing), separator) }

// Names returns the names of parts.
func Names(parts []Part) (names []string) {
	for _, part := range parts {
		names = append(names, string(part))
	}
	return names
}

// separator is valid in a label and part of no name.
const separator = "."

// ParseLabel parses the value of Label, and ignores unknown parts.
func ParseLabel(value string) (missing []Part) {
	for name := range strings.SplitSeq(value, separator) {
		if slices.Contains(parts, Part(name)) {
			missing = append(missing, Part(name))
		}
	}
	return missing
}
