package webhook

import (
	"context"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// An answer that nobody could give is no yes.
func TestAMachineWhoseClusterCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	api := fault.NewServer(t)
	api.Refuse = func(string) error { return context.Canceled }
	response := machineValidator{reviewer{api.Manager}}.Handle(t.Context(), creation(t, sample.Machine("fleet", "m")))
	if response.Allowed || !strings.Contains(response.Result.Message, "get Cluster east: ") {
		t.Errorf("answer %+v, want a refusal because the Cluster could not be read", response)
	}
}
