package surge

import (
	"fmt"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxNamed = 3

// replacedMessage returns who serves instead of a pod.
func (p *pass) replacedMessage(d detachedPod, others, need int32) string {
	newcomers := p.newcomers(d)
	if newcomers.available == nil {
		return fmt.Sprintf("Pod %s is not needed any more: available without it: %d, needed: %d.", d.pod.Name, others, need)
	}
	return fmt.Sprintf("Pod %s is replaced by %s: available without it: %d, needed: %d.", d.pod.Name, newcomers.available.Name, others, need)
}

func (p *pass) awaitedMessage(d detachedPod, others, need int32) string {
	return fmt.Sprintf("Pod %s serves on until it is replaced: available without it: %d, needed: %d. %s",
		d.pod.Name, others, need, p.lacking(d))
}

func (p *pass) gaveUpMessage(d detachedPod, patience time.Duration) string {
	return fmt.Sprintf("Gave up on replacing pod %s after %s; it goes back to ReplicaSet %s. %s",
		d.pod.Name, patience, d.record.ReplicaSet.Name, p.lacking(d))
}

// coveredMessage returns why a pod neither waits nor goes back.
func coveredMessage(d detachedPod, why string) string {
	return fmt.Sprintf("Pod %s waits no longer: %s, but others are ready in its place.", d.pod.Name, why)
}

// lacking names the newcomers that are not available, and what to look at.
func (p *pass) lacking(d detachedPod) string {
	lacking := p.newcomers(d).lacking
	if len(lacking) == 0 {
		return command.Of("No replacement is being made. Look at: kubectl -n %s describe replicaset %s", d.pod.Namespace, d.record.ReplicaSet.Name)
	}
	if unreached := p.unreached(lacking[0]); unreached != "" {
		return unreached
	}
	var names []string
	for _, pod := range lacking {
		names = append(names, pod.Name)
	}
	return fmt.Sprintf("Not available: %s. Look at: %s", list(names, "", ""), command.Of("kubectl -n %s describe pod %s", d.pod.Namespace, names[0]))
}

func (p *pass) newcomers(d detachedPod) *replicaSet {
	set := p.sets[d.record.ReplicaSet.UID]
	if set == nil {
		return &replicaSet{}
	}
	p.look(set)
	return set
}

func list(names []string, one, several string) string {
	does := several
	if len(names) == 1 {
		does = one
	}
	return strings.TrimSpace(phrase.Some(names, maxNamed) + " " + does)
}
