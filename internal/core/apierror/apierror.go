// Package apierror recognizes answers of the API server by their text, where they have no
// reason, code or cause. No other package does so, and none reads a text of Ebbtide itself
// (test/arch). Names of webhooks and policies are identifiers, not text.
package apierror

import (
	"regexp"
	"strings"
)

// Texts of the API server, the same in all supported versions.
const (
	severalBudgets  = "more than one PodDisruptionBudget"
	differentUID    = "the UID in the precondition"
	deniedByWebhook = "denied the request"
	deniedByPolicy  = "denied request"
	violation       = "Cannot evict pod as it would violate the pod's disruption budget."
)

var (
	budgetName = regexp.MustCompile(`(?i:the) disruption budget (\S+) `)
	// Names of webhooks are domain names.
	webhookName     = regexp.MustCompile(`admission webhook "([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"`)
	uncalledWebhook = regexp.MustCompile(`failed calling webhook "([a-z0-9.-]{1,253})"`)
	policyName      = regexp.MustCompile(`ValidatingAdmissionPolicy '([a-z0-9.-]{1,253})' with binding '[a-z0-9.-]{1,253}' denied request`)
	missingRight    = regexp.MustCompile(`User "(.{0,300}?)" cannot ([a-z]+) resource "([a-z0-9./-]+)" in API group "([a-z0-9.-]*)"(?: in the namespace "([a-z0-9-]+)"| at the cluster scope)?`)
)

// IsSeveralBudgets reports whether an eviction is refused because several budgets apply.
func IsSeveralBudgets(text string) bool { return strings.Contains(text, severalBudgets) }

// IsOtherUID reports whether the UID of a precondition does not match.
func IsOtherUID(text string) bool { return strings.Contains(text, differentUID) }

// IsDenied reports whether an admission webhook or policy refuses.
func IsDenied(text string) bool {
	return strings.Contains(text, deniedByWebhook) || strings.Contains(text, deniedByPolicy)
}

// Budget returns the PodDisruptionBudget that refuses an eviction, if it is named.
func Budget(text string) string { return first(budgetName, text) }

// Webhook returns the admission webhook that refuses, if it is named.
func Webhook(text string) string { return first(webhookName, text) }

// Policy returns the ValidatingAdmissionPolicy that refuses, if it is named.
func Policy(text string) string { return first(policyName, text) }

// UncalledWebhook returns the required admission webhook that could not be called, if it is named.
func UncalledWebhook(text string) string { return first(uncalledWebhook, text) }

// Violation returns the answer about a budget with the sentence that its cause lacks.
func Violation(text string) string {
	if strings.HasPrefix(text, violation) {
		return text
	}
	return violation + " " + text
}

// Right is a right that a user lacks.
type Right struct {
	User, Verb      string
	Resource, Group string
	Namespace       string
}

// MissingRight returns the right that the authorizer reports as missing; false for other refusals.
func MissingRight(text string) (Right, bool) {
	found := missingRight.FindStringSubmatch(text)
	if found == nil {
		return Right{}, false
	}
	return Right{User: found[1], Verb: found[2], Resource: found[3], Group: found[4], Namespace: found[5]}, true
}

func first(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
