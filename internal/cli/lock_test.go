package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	annas   = `{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:10:00Z"}`
	berts   = `{"holder":"user/bert","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:40:00Z"}`
	drains  = `{"holder":"nodemaintenance/reboot/node-1","reason":"new kernel","acquiredAt":"2026-03-01T11:55:00Z","expiresAt":"2026-03-01T12:05:00Z"}`
	ended   = `{"holder":"user/bert","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T11:40:00Z"}`
	garbage = `yes please`
)

// verbTest is one run of a verb on a budget.
type verbTest struct {
	lock string
	args []string
	want result
	// bears is what the budget bears afterwards.
	bears string
}

func (v verbTest) run(t *testing.T) {
	t.Parallel()
	s := newServer(t, v.lock)
	if diff := cmp.Diff(v.want, s.run(t, v.args...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v.bears, s.lock()); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	const (
		hour      = `{"holder":"user/anna","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`
		hourShown = "PodDisruptionBudget shop/web is locked by user/anna until 2026-03-01T13:00:00Z"
		more      = "\nThat is 60m from now. Lock again to renew it, or end it with\n"
		again     = "  kubectl ebbtide unlock pdb/web -n shop --kubeconfig CONFIG\n"
	)
	for name, tt := range map[string]verbTest{
		"for an hour":         {"", []string{"lock", "pdb/web"}, result{Out: hourShown + more + again}, hour},
		"in two words":        {"", []string{"lock", "pdb", "web"}, result{Out: hourShown + more + again}, hour},
		"by its whole name":   {"", []string{"lock", "poddisruptionbudgets.v1.policy/web"}, result{Out: hourShown + more + again}, hour},
		"after one has ended": {ended, []string{"lock", "PDB/web"}, result{Out: hourShown + more + again}, hour},
		"with words and time": {
			"",
			[]string{"lock", "pdb/web", "--for", "4h", "--reason", "moving shards"},
			result{Out: "PodDisruptionBudget shop/web is locked by user/anna until 2026-03-01T16:00:00Z: moving shards\n" +
				"That is 4h from now. Lock again to renew it, or end it with\n" + again},
			`{"holder":"user/anna","reason":"moving shards","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T16:00:00Z"}`,
		},
		"one's own is renewed": {
			annas,
			[]string{"lock", "pdb/web"},
			result{Out: hourShown + ": backup" + more + again},
			`{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`,
		},
		"in another name": {
			"",
			[]string{"lock", "pdb/web", "--holder", "shard mover", "-n", "shop", "--context", "there"},
			result{Out: "PodDisruptionBudget shop/web is locked by shard mover until 2026-03-01T13:00:00Z" + more +
				"  kubectl ebbtide unlock pdb/web -n shop --context there --kubeconfig CONFIG --holder 'shard mover'\n"},
			`{"holder":"shard mover","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`,
		},
		"as another user": {
			"",
			[]string{"lock", "pdb/web", "--as", "system:serviceaccount:shop:mover"},
			result{Out: "PodDisruptionBudget shop/web is locked by user/system:serviceaccount:shop:mover until 2026-03-01T13:00:00Z" + more +
				"  kubectl ebbtide unlock pdb/web -n shop --as system:serviceaccount:shop:mover --kubeconfig CONFIG\n"},
			`{"holder":"user/system:serviceaccount:shop:mover","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`,
		},
		"not really":           {"", []string{"lock", "pdb/web", "--dry-run=client"}, result{Out: hourShown + " (dry run)\n"}, ""},
		"not really, it seems": {annas, []string{"lock", "pdb/web", "--dry-run=server"}, result{Out: hourShown + ": backup (server dry run)\n"}, annas},
		"for a script":         {"", []string{"lock", "pdb/web", "-o", "name"}, result{Out: "poddisruptionbudget.policy/web\n"}, hour},
	} {
		t.Run(name, tt.run)
	}
}

func TestLockIsRefused(t *testing.T) {
	t.Parallel()
	const force = "  kubectl ebbtide unlock pdb/web -n shop --kubeconfig CONFIG --force\n"
	for name, tt := range map[string]verbTest{
		"while somebody else has it": {berts, []string{"lock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by user/bert until 2026-03-01T12:40:00Z: compaction\n" +
			"It ends in 40m, unless it is renewed. Lock it then, or take it from its holder with\n" + force}, berts},
		"while a drain has it": {drains, []string{"lock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by nodemaintenance/reboot/node-1 until 2026-03-01T12:05:00Z: new kernel\n" +
			"It is for the pods that stay on node node-1, and is renewed until they are back. See how far that is with\n" +
			"  kubectl describe nodemaintenance reboot --kubeconfig CONFIG\n"}, drains},
		"while nobody can read who has it": {garbage, []string{"lock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by an unknown holder until 2026-03-01T12:05:00Z: " +
			"annotation ebbtide.dev/lock is no JSON of a lock: invalid character 'y' looking for beginning of value\n" +
			"It ends in 5m, unless the budget is changed. Lock it then, or remove what is there with\n" + force}, garbage},
		"even if it is only tried": {berts, []string{"lock", "pdb/web", "--dry-run=client", "-o", "json"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by user/bert until 2026-03-01T12:40:00Z: compaction\n" +
			"It ends in 40m, unless it is renewed. Lock it then, or take it from its holder with\n" + force}, berts},
		"for a budget that is not there": {"", []string{"lock", "pdb/wep"}, result{Code: 1, ErrOut: "error: " +
			"there is no PodDisruptionBudget wep in namespace shop. See those that are there with\n" +
			"  kubectl get pdb -n shop --kubeconfig CONFIG\n"}, ""},
		"in a namespace that is not there": {"", []string{"lock", "pdb/web", "--context", "there"}, result{Code: 1, ErrOut: "error: " +
			"there is no PodDisruptionBudget web in namespace bank. See those that are there with\n" +
			"  kubectl get pdb -n bank --context there --kubeconfig CONFIG\n"}, ""},
	} {
		t.Run(name, tt.run)
	}
}

// The disruption controller writes the status of a budget whenever a pod comes or
// goes; that is no reason for the user to try again. Another lock is.
func TestLockAndOthersWrite(t *testing.T) {
	t.Parallel()
	status := func(until int) func(int, *policyv1.PodDisruptionBudget) {
		return func(n int, b *policyv1.PodDisruptionBudget) {
			if n <= until {
				touch(b)
			}
		}
	}
	t.Run("often", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, "")
		s.meddle = status(9)
		if got := s.run(t, "lock", "pdb/web"); got.Code != 0 || s.writes != 10 || s.lock() == "" {
			t.Errorf("%+v after %d writes, and the budget bears %q; want that the 10th succeeds", got, s.writes, s.lock())
		}
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, "")
		s.meddle = status(1000)
		want := result{Code: 1, ErrOut: "error: PodDisruptionBudget shop/web was written by others 10 times in a row; try again\n"}
		if diff := cmp.Diff(want, s.run(t, "lock", "pdb/web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a lock", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, "")
		s.meddle = func(_ int, b *policyv1.PodDisruptionBudget) {
			b.Annotations[v1alpha1.LockAnnotation] = berts
			touch(b)
		}
		want := result{Code: 1, ErrOut: "error: PodDisruptionBudget shop/web is locked by user/bert until 2026-03-01T12:40:00Z: compaction\n" +
			"It ends in 40m, unless it is renewed. Lock it then, or take it from its holder with\n" +
			"  kubectl ebbtide unlock pdb/web -n shop --kubeconfig CONFIG --force\n"}
		if diff := cmp.Diff(want, s.run(t, "lock", "pdb/web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s.writes != 1 || s.lock() != berts {
			t.Errorf("%d writes, and the budget bears %s; want one write and %s", s.writes, s.lock(), berts)
		}
	})
}
