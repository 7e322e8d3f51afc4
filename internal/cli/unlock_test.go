package cli

import "testing"

func TestUnlock(t *testing.T) {
	t.Parallel()
	const unlocked = "PodDisruptionBudget shop/web is unlocked"
	for name, tt := range map[string]verbTest{
		"one's own":            {annas, []string{"unlock", "pdb/web"}, result{Out: unlocked + "\n"}, ""},
		"one's own, as if":     {annas, []string{"unlock", "pdb/web", "--dry-run=client"}, result{Out: unlocked + " (dry run)\n"}, annas},
		"one's own, checked":   {annas, []string{"unlock", "pdb/web", "--dry-run=server"}, result{Out: unlocked + " (server dry run)\n"}, annas},
		"in the holder's name": {berts, []string{"unlock", "pdb/web", "--holder=user/bert"}, result{Out: unlocked + "\n"}, ""},
		"as the holder":        {berts, []string{"unlock", "pdb", "web", "--as=bert"}, result{Out: unlocked + "\n"}, ""},
		"no lock":              {"", []string{"unlock", "pdb/web"}, result{Out: "PodDisruptionBudget shop/web is not locked\n"}, ""},
		"no lock, by force":    {"", []string{"unlock", "pdb/web", "--force"}, result{Out: "PodDisruptionBudget shop/web is not locked\n"}, ""},
		"one that has ended": {
			ended,
			[]string{"unlock", "pdb/web"},
			result{Out: "PodDisruptionBudget shop/web is not locked: its last lock ended at 2026-03-01T11:40:00Z\n"},
			ended,
		},
		"one that has ended, by force": {
			ended,
			[]string{"unlock", "pdb/web", "--force"},
			result{Out: unlocked + "\nIts lock was that of \"user/bert\", until 2026-03-01T11:40:00Z\n"},
			"",
		},
		"somebody else's, by force": {
			berts,
			[]string{"unlock", "pdb/web", "--force"},
			result{Out: unlocked + "\nIts lock was that of \"user/bert\", until 2026-03-01T12:40:00Z\n"},
			"",
		},
		"one that nobody can read, by force": {
			garbage,
			[]string{"unlock", "pdb/web", "--force"},
			result{Out: unlocked + "\nIts lock was that of \"an unknown holder\", until 2026-03-01T12:05:00Z\n"},
			"",
		},
		"a drain's, by force": {
			drains,
			[]string{"unlock", "pdb/web", "--force"},
			result{Out: unlocked + "\nIts lock was that of \"nodemaintenance/reboot/node-1\", until 2026-03-01T12:05:00Z\n" +
				"NodeMaintenance reboot takes it again while it needs it. See how far it is with\n" +
				"  kubectl describe nodemaintenance reboot --kubeconfig CONFIG\n"},
			"",
		},
	} {
		t.Run(name, tt.run)
	}
}

func TestUnlockIsRefused(t *testing.T) {
	t.Parallel()
	const force = "  kubectl ebbtide unlock pdb/web -n shop --kubeconfig CONFIG --force\n"
	for name, tt := range map[string]verbTest{
		"somebody else's": {berts, []string{"unlock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by user/bert until 2026-03-01T12:40:00Z: compaction\n" +
			"You are user/anna, so it is not yours. It ends in 40m, unless it is renewed. Take it from its holder with\n" + force}, berts},
		"a drain's": {drains, []string{"unlock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by nodemaintenance/reboot/node-1 until 2026-03-01T12:05:00Z: new kernel\n" +
			"It is for the pods that stay on node node-1, and NodeMaintenance reboot takes it again while it needs it. See how far it is with\n" +
			"  kubectl describe nodemaintenance reboot --kubeconfig CONFIG\n" +
			"or take it away all the same with\n" + force}, drains},
		"one that nobody can read": {garbage, []string{"unlock", "pdb/web"}, result{Code: 1, ErrOut: "error: " +
			"PodDisruptionBudget shop/web is locked by an unknown holder until 2026-03-01T12:05:00Z: " +
			"annotation ebbtide.dev/lock is no JSON of a lock: invalid character 'y' looking for beginning of value\n" +
			"It ends in 5m, unless the budget is changed. Remove it now with\n" + force}, garbage},
		"one of a budget that is not there": {berts, []string{"unlock", "pdb/wep"}, result{Code: 1, ErrOut: "error: " +
			"there is no PodDisruptionBudget wep in namespace shop. See those that are there with\n" +
			"  kubectl get pdb -n shop --kubeconfig CONFIG\n"}, berts},
	} {
		t.Run(name, tt.run)
	}
}
