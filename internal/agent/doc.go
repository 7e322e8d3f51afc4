// Package agent runs beside the kubelet and stops static pods, as evacuator kubelet.k8s.io. One
// loop observes the node, calls core/nodeagent, writes down its next step, renames manifests and
// reports. Without an API server it changes nothing. Whatever others put into the folder neither
// stops it nor fills its memory. A rename is on disk in the journal before it is made, so the
// agent can be killed at any moment.
package agent
