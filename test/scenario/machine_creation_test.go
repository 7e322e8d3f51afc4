package scenario

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func hook(name, owner string) v1alpha1.LifecycleHook {
	return v1alpha1.LifecycleHook{Name: name, Owner: owner}
}
