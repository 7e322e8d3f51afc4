package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// request is what the audit log says of a request of the manager.
type request struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// right is one verb on one resource that a role of the chart gives.
type right struct{ namespace, group, resource, verb string }

func (r right) String() string {
	text := fmt.Sprintf("%s %s", r.verb, r.resource)
	if r.group != "" {
		text += "." + r.group
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// uses returns true if the request needed the right. What watches may have to list,
// where the API server does not stream lists.
func (r right) uses(asked request) bool {
	verbs := []string{r.verb}
	if r.verb == "list" {
		verbs = append(verbs, "watch")
	}
	resource := asked.ObjectRef.Resource
	if asked.ObjectRef.Subresource != "" {
		resource += "/" + asked.ObjectRef.Subresource
	}
	return r.group == asked.ObjectRef.APIGroup && r.resource == resource && slices.Contains(verbs, asked.Verb) &&
		(r.namespace == "" || r.namespace == asked.ObjectRef.Namespace)
}

// checkRights compares what managers have asked for with what the chart gives them.
func checkRights(exempt []string) (code int) {
	fail := func(what ...any) {
		fmt.Fprintln(os.Stderr, what...)
		code = 1
	}
	needless := slices.Clone(exempt)
	exempted := func(is func(text string) bool) bool {
		needless = slices.DeleteFunc(needless, is)
		return slices.ContainsFunc(exempt, is)
	}
	unused, err := chartRights()
	for _, p := range shared.planes {
		if p.AuditLog != "" && err == nil {
			unused, err = compare(p.AuditLog, unused, func(forbidden string) {
				if !exempted(func(text string) bool { return strings.HasPrefix(forbidden, text) }) {
					fail("the chart does not give the manager the right to", forbidden)
				}
			})
		}
	}
	if err != nil {
		fail("compare the rights of the manager with what it asked for:", err)
	}
	if err != nil || len(shared.planes) == 0 {
		return code
	}
	left := leftover{Needless: needless}
	for _, one := range unused {
		left.Unused = append(left.Unused, one.String())
	}
	complete, err := left.ofAllTiers()
	if err != nil {
		fail("compare the rights of the manager over both tiers of tests:", err)
	}
	if !complete {
		return code
	}
	for _, one := range left.faults(exempt) {
		fail(one)
	}
	return code
}

// leftover is what tests have not used.
type leftover struct {
	// Unused are rights.
	Unused []string
	// Needless are exemptions.
	Needless []string
}

// faults are the rights that nothing uses and the exemptions that nothing needs.
func (l *leftover) faults(exempt []string) (faults []string) {
	for _, one := range l.Unused {
		if !slices.Contains(exempt, one) {
			faults = append(faults, "no test has used the right of the manager to "+one)
		}
	}
	for _, text := range l.Needless {
		if !slices.Contains(l.Unused, text) {
			faults = append(faults, "nothing needs the exemption "+text)
		}
	}
	return faults
}

// ofAllTiers returns true if, with this process, all tests were run. The first tier writes what
// it has not used for the second one, which drops what the first has used.
func (l *leftover) ofAllTiers() (complete bool, err error) {
	dir, err := sandbox.ProgramDir()
	if err != nil {
		return false, err
	}
	file := filepath.Join(filepath.Dir(dir), "unused-rights.json")
	run, skip := flag.Lookup("test.run").Value.String(), flag.Lookup("test.skip").Value.String()
	switch {
	case run == "" && skip == "":
		return true, nil
	case run == "" && skip == longTests:
		data, err := json.Marshal(l)
		if err != nil {
			return false, err
		}
		return false, os.WriteFile(file, data, 0o600)
	case run == longTests && skip == "":
		return l.without(file, filepath.Join(dir, "ebbtide"))
	default:
		return false, nil
	}
}

// longTests are the flags by which the make targets choose a tier.
const longTests = "^TestLong"

// without drops what the first tier has used, and returns false if that did not run with this
// manager.
func (l *leftover) without(file, manager string) (complete bool, err error) {
	wrote, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	built, buildErr := os.Stat(manager)
	if err := errors.Join(err, buildErr); err != nil || wrote.ModTime().Before(built.ModTime()) {
		return false, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var first leftover
	if err := json.Unmarshal(data, &first); err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	l.Unused = slices.DeleteFunc(l.Unused, func(one string) bool { return !slices.Contains(first.Unused, one) })
	l.Needless = slices.DeleteFunc(l.Needless, func(one string) bool { return !slices.Contains(first.Needless, one) })
	return true, nil
}

// forPeople are the roles of the chart that no program has.
var forPeople = []string{"ebbtide-view", "ebbtide-drain"}

// chartRights are those that the roles of the chart give to programs, all of them bound or not.
func chartRights() (rights []right, err error) {
	objects, err := chart(context.Background(), Spec{})
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" || slices.Contains(forPeople, object.GetName()) {
			continue
		}
		var role rbacv1.Role // A ClusterRole has the same rules.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, fmt.Errorf("read a role of the chart: %w", err)
		}
		for _, rule := range role.Rules {
			rights = append(rights, ofRule(role.Namespace, rule)...)
		}
	}
	return rights, nil
}

func ofRule(namespace string, rule rbacv1.PolicyRule) (rights []right) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, right{namespace, group, resource, verb})
			}
		}
	}
	return rights
}

// compare reads an audit log: it tells of each right that was asked for in vain, once,
// and returns those that were not used.
func compare(log string, rights []right, forbidden func(string)) (unused []right, err error) {
	file, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		return rights, nil // Nobody has asked for anything.
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	told := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return nil, fmt.Errorf("read %s: %w", log, err)
		}
		rights = slices.DeleteFunc(rights, func(r right) bool { return r.uses(asked) })
		if asked.Annotations["authorization.k8s.io/decision"] != "forbid" {
			continue
		}
		ref := asked.ObjectRef
		if text := strings.TrimSuffix(fmt.Sprintf("%s %s.%s/%s", asked.Verb, ref.Resource, ref.APIGroup, ref.Subresource), "/"); !told[text] {
			told[text] = true
			forbidden(fmt.Sprintf("%s, such as %s in namespace %q", text, ref.Name, ref.Namespace))
		}
	}
	return rights, lines.Err()
}
