//go:build unix && !linux

package sandbox

import "syscall"

// childAttributes puts a child into a process group of its own. Only Linux can
// tie its life to that of this process; elsewhere a killed parent leaves it behind.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
