package bridge

import core "ebbtide.dev/ebbtide/internal/core/bridge"

// openShift returns the kinds of OpenShift's machine API.
func openShift() kind {
	return kind{bridge: core.OpenShift, machine: core.OpenShiftMachine, around: core.OpenShiftSet}
}
