package blocker

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxAgentWords limits the bytes of an agent's text that are repeated, because a compromised node
// controls that text.
const maxAgentWords = 300

// Agent is an agent of a node that does not answer.
type Agent struct {
	Node  *corev1.Node
	Since time.Time
	// Dir is the folder of manifests, as the agent has named it.
	Dir string
	// Held counts the static pods that the agent keeps away.
	Held int
}

// Down says that static pods can neither be taken down nor come back, and what helps.
func (a Agent) Down() v1alpha1.Blocker {
	b := one(v1alpha1.BlockerNodeAgentDown, ofAgent(a.Node.Name), a.Since)
	b.Message = a.Message()
	b.Suggestion = command.Of("Find its pod: kubectl get pods -A -l app.kubernetes.io/name=ebbtide-agent --field-selector spec.nodeName=%s. ", a.Node.Name)
	if a.Held > 0 {
		b.Suggestion = ""
	}
	b.Suggestion += command.Of("To go on without it and leave the static pods that run: kubectl delete nodeagent %s", a.Node.Name)
	return b
}

// Message returns what is the matter, with the line that helps if pods are kept away.
func (a Agent) Message() string {
	since := a.Since.UTC().Format("15:04:05 MST")
	if a.Held == 0 {
		return fmt.Sprintf("The agent on %s has not responded since %s, so its static pods are not stopped.", a.Node.Name, since)
	}
	return fmt.Sprintf("%s keeps %s away and its agent does not answer since %s. Bring them back on the node: %s",
		a.Node.Name, phrase.Count(a.Held, "static pod"), since, BringBack(a.Dir))
}

// BringBack returns the shell command that restores static pods on their node from the folder dir.
func BringBack(dir string) string {
	return command.Of(`for f in %[1]s/.*.ebbtide-held; do b=${f##*/.}; mv -n "$f" "%[1]s/${b%%.ebbtide-held}"; done`, command.Folder(dir, "STATIC_POD_PATH"))
}

// AgentWorks explains a static pod without mirror pod that its agent has not seen stop.
func AgentWorks(node *corev1.Node, pod v1alpha1.StaticPod) v1alpha1.Blocker {
	b := one(v1alpha1.BlockerEvacuatorRunning, ofAgent(node.Name), time.Time{})
	if pod.SinceTime != nil {
		b.SinceTime = pod.SinceTime.DeepCopy()
	}
	b.Message = fmt.Sprintf("Static pod %s/%s has no mirror pod, and the agent of %s says that it is %s, not Held.",
		excerpt.Line(pod.Namespace, maxAgentWords), excerpt.Line(pod.Name, maxAgentWords), node.Name, excerpt.Line(string(pod.State), maxAgentWords))
	if pod.Message != "" {
		b.Message += " It says: " + excerpt.Line(pod.Message, maxAgentWords)
	}
	b.Suggestion = command.Of("Wait; what the agent sees: kubectl get nodeagent %s -o yaml", node.Name)
	return b
}

// Unmanageable returns why an agent leaves a static pod on its node, in the agent's words.
func Unmanageable(pod *corev1.Pod, said v1alpha1.StaticPod) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: v1alpha1.RetainedNoEvacuator, Object: ofPod(pod), PodCount: 1}
	b.Message = fmt.Sprintf("The agent of %s cannot take the pod down", pod.Spec.NodeName)
	if said.Reason != "" {
		b.Message += " (" + excerpt.Line(said.Reason, maxAgentWords) + ")"
	}
	b.Message += ": " + excerpt.Line(said.Message, maxAgentWords)
	b.Suggestion = "To have it leave, do what the agent says, or take the pod's manifest away from its kubelet."
	return b
}

func ofAgent(node string) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeAgent", Name: node}
}
