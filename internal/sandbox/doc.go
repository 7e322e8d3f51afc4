// Package sandbox builds and runs a real Kubernetes control plane from Go modules, without
// containers; kwok simulates the kubelets. It can download the official programs instead.
// Everything listens on 127.0.0.1. A binary is complete or absent, and no process outlives its
// parent. Logs go to files and are shown only for a component that fails.
package sandbox
