package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxSaid is how much is shown of what an API server or a proxy says.
const maxSaid = 1024

// inWords says of an error, whichever verb has it, what is wrong and what shows or helps it,
// where that does not depend on what the verb does: a cluster that does not answer, one
// without Ebbtide, a right that is missing. Any other error is returned as it is.
func (c *connection) inWords(err error) error {
	var said said
	switch {
	case err == nil, errors.As(err, &said), errors.As(err, new(NotDone)), errors.As(err, new(detached)), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*url.Error)), errors.As(err, new(noAnswer)):
		return c.unreachable(err)
	case lacksEbbtide(err):
		return c.missing()
	case apierrors.IsUnauthorized(err):
		return coded{c.unknownUser(err), codeNoRight}
	case apierrors.IsForbidden(err):
		return coded{c.forbidden(err), codeNoRight}
	case isOurs(apierror.UncalledWebhook(err.Error())):
		return coded{c.noManager(err), codeNoManager}
	}
	return err
}

// said is an error in a verb's own words that cover all there is to say.
type said struct{ error }

// Unwrap returns the error within.
func (s said) Unwrap() error { return s.error }

// unreachable says which cluster does not answer, and what to look at.
func (c *connection) unreachable(err error) error {
	address := ""
	if config, _, _, err := c.config(); err == nil {
		address = " at " + excerpt.Line(config.Host, 300)
	}
	return fmt.Errorf("the cluster%s does not answer: %s. Is it up, and the one that you mean? %s shows which it is",
		address, excerpt.Line(cause(err).Error(), maxSaid), c.viewConfig())
}

// cause is what an error comes of, without what has been tried.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		// What TLS and certificates say needs its own context.
		if strings.HasPrefix(err.Error(), "tls: ") {
			return err
		}
		err = next
	}
}

// lacksEbbtide returns true for the error of a kind of ours that nobody serves.
func lacksEbbtide(err error) bool {
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return kind.GroupKind.Group == v1alpha1.SchemeGroupVersion.Group
	}
	var resource *meta.NoResourceMatchError
	return errors.As(err, &resource) && resource.PartialResource.Group == v1alpha1.SchemeGroupVersion.Group
}

// missing says that Ebbtide is not there, and how to install it.
func (c *connection) missing() error {
	return fmt.Errorf("Ebbtide is not installed in this cluster, or is too old: nobody serves its kinds (%s). Install it as README.md says,\n  %s\n"+
		"or choose another cluster with --context", v1alpha1.SchemeGroupVersion.Group,
		command.Of("helm upgrade --install ebbtide charts/ebbtide --namespace %s --create-namespace --set image.repository=REGISTRY/ebbtide --wait", usualNamespace))
}

// unknownUser says that the cluster does not accept the credentials.
func (c *connection) unknownUser(err error) error {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message
	}
	return fmt.Errorf("the cluster does not accept your credentials: %s. Log in again, or choose another user; %s shows which it is",
		excerpt.Line(text, maxSaid), c.viewConfig())
}

// forbidden says which right is missing, and the command that shows it. Who refuses for
// other reasons, such as a webhook, has words of its own.
func (c *connection) forbidden(err error) error {
	right, found := apierror.MissingRight(err.Error())
	if !found {
		return err
	}
	resource, sub, _ := strings.Cut(right.Resource, "/")
	where, flags := "in the whole cluster", c.again("")
	if right.Namespace != "" {
		where, flags = "in namespace "+right.Namespace, c.again(right.Namespace)
	}
	if right.Group != "" {
		resource += "." + right.Group
	}
	if sub != "" {
		flags = command.Join(" --subresource=%s%s", sub, flags)
		sub = "/" + sub
	}
	return fmt.Errorf("%syou may not %s %s%s %s (you are user %q). Ask whoever gives rights in this cluster for that verb; whether you have it shows\n  %s",
		before(err, right.Verb+" "+right.Resource), right.Verb, resource, sub, where, right.User,
		command.Of("kubectl auth can-i %s %s%s", right.Verb, resource, flags))
}

// before is what a verb says before what the API server says, without what has been tried:
// that is said anyway.
func before(err error, tried string) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	words, _, _ := strings.Cut(err.Error(), status.Status().Message)
	return strings.TrimSuffix(words, tried+": ")
}

// isOurs reports whether a webhook is one of Ebbtide.
func isOurs(webhook string) bool {
	return strings.HasSuffix(webhook, "."+v1alpha1.SchemeGroupVersion.Group)
}

// noManager says that nobody checks what is asked for, so that nothing can be asked.
func (c *connection) noManager(err error) error {
	return fmt.Errorf("no manager of Ebbtide answers, and without one nothing can be asked for: %s. Look after it with\n  %s",
		excerpt.Line(err.Error(), maxSaid), c.kubectl("get pods -n %s", usualNamespace))
}
