package scenario

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// impatient is a maintenance that has given up to wait for a lock after this time.
func impatient(action v1alpha1.LockTimeoutAction, seconds int32) v1alpha1.InPlace {
	return v1alpha1.InPlace{ExpectedDowntimeSeconds: 120, LockTimeoutSeconds: seconds, OnLockTimeout: action}
}
