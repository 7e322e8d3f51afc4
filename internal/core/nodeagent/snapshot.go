package nodeagent

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// Snapshot is all that a decision reads. It is never changed by Decide.
type Snapshot struct {
	Now time.Time
	// Self describes the agent itself.
	Self Self
	// Node is the agent's, and Pods are all of its pods that the API shows; nil is unknown.
	Node *corev1.Node
	Pods []*corev1.Pod
	// Live is true if Node and Pods were read from the API server for this decision.
	Live bool
	// KubeletSeen is the last renewal of the kubelet's Lease; zero is unknown.
	KubeletSeen time.Time
	// Evacuations holds the known ones of static pods of the node.
	Evacuations  []*v1alpha1.Evacuation
	Maintenances []*v1alpha1.NodeMaintenance
	// Agent is the object of the agent; nil if there is none, or if it is unknown.
	Agent  *v1alpha1.NodeAgent
	Folder Folder
	// Journal holds the agent's records.
	Journal      Journal
	ControlPlane ControlPlane
	// Failures are the words of renames that failed, by the file that they are about.
	Failures map[string]string
}

// Self describes the agent itself.
type Self struct {
	Node, PodName, PodNamespace, Version, BootID string
	Dir                                          string
}

// Folder is the folder with the manifests of static pods.
type Folder struct {
	Known bool
	// Absent is true if there is no such folder, which is known too.
	Absent bool
	// Fault is the reason why nothing can be moved, with Message; empty if it can.
	Fault, Message string
	// Files lists its content, in any order.
	Files []File
}

// File is an entry of the folder.
type File struct {
	Name string
	// Sum is the SHA-256 of its content, in hexadecimal; empty if it was not read.
	Sum string
	// Changed is the time of the last change of the entry or its content.
	Changed time.Time
	// Manifest holds the pod that it makes; nil if it makes nothing, and then Fault says why.
	Manifest *Manifest
	Fault    string
}

// Decision holds the agent's actions, in the order of the fields.
type Decision struct {
	// Journal is to be stored before anything is moved; nil if it stays as it is.
	Journal *Journal
	// NeedsLive is true if a live snapshot has to confirm the decision.
	NeedsLive bool
	// Moves are renames, after which everything is to be observed and decided again.
	Moves []Move
	// Claim changes the claim on the control plane, after which all is observed again.
	Claim Claim
	// Status is written to the NodeAgent. It is valid if nothing is moved and the Node is known.
	Status      v1alpha1.NodeAgentStatus
	Evacuations []Progress
	Events      []event.Event
	// After is the longest delay until the next decision; 0 waits for a change.
	After time.Duration
}

// Progress is the status that an Evacuation is to have.
type Progress struct {
	Evacuation *v1alpha1.Evacuation
	Status     v1alpha1.EvacuationStatus
}

// Move is a rename inside of the folder. Nothing but Over may lose what is at To.
type Move struct {
	// File is the name that the kubelet knows.
	File     string
	From, To string
	// Hold is true if the manifest is put aside, false if it is put back or out of the way.
	Hold   bool
	Over   bool
	Events []event.Event
}

const (
	heldSuffix       = ".ebbtide-held"
	supersededSuffix = ".ebbtide-superseded"
)

// HeldName returns the name of a manifest that is put aside, which starts with a dot.
func HeldName(file string) string { return "." + file + heldSuffix }

// HeldFile returns the manifest of such a name; false for other names.
func HeldFile(name string) (file string, held bool) {
	file, held = strings.CutSuffix(strings.TrimPrefix(name, "."), heldSuffix)
	return file, held && strings.HasPrefix(name, ".") && Visible(file)
}

// Visible is true of names of which the kubelet takes notice.
func Visible(name string) bool { return name != "" && name[0] != '.' }

// Ours is true of names that only this agent gives.
func Ours(name string) bool {
	return strings.HasPrefix(name, ".") && (strings.HasSuffix(name, heldSuffix) || strings.HasSuffix(name, supersededSuffix))
}
