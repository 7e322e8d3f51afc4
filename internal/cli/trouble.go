package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxSaid bounds the text of an API server or a proxy.
const maxSaid = 1024

// inWords adds to the common errors of all verbs the cause and a command: a cluster that does not
// answer, one without Ebbtide, a missing right. It returns other errors unchanged.
func (c *connection) inWords(err error) error {
	switch {
	case err == nil, errors.As(err, new(failed)), errors.As(err, new(ended)), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*url.Error)), errors.As(err, new(kube.NoAnswer)):
		return c.unreachable(err)
	case lacksEbbtide(err):
		return c.missing()
	case apierrors.IsUnauthorized(err):
		return failed{c.unknownUser(err), codeNoRight}
	case apierrors.IsForbidden(err):
		return failed{c.forbidden(err), codeNoRight}
	case isOurs(apierror.UncalledWebhook(err.Error())):
		return failed{c.noManager(err), codeNoManager}
	}
	return err
}

// unreachable names the cluster that does not answer.
func (c *connection) unreachable(err error) error {
	address := ""
	if config, _, _, err := c.config(io.Discard); err == nil {
		address = " at " + excerpt.Line(config.Host, 300)
	}
	return fmt.Errorf("the cluster%s does not answer: %s. Check that it is running and the right one with\n  %s",
		address, excerpt.Line(cause(err).Error(), maxSaid), c.viewConfig())
}

// cause returns the innermost error.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		// Errors of TLS and certificates need their context.
		if strings.HasPrefix(err.Error(), "tls: ") {
			return err
		}
		err = next
	}
}

// lacksEbbtide reports whether a kind of Ebbtide is not served.
func lacksEbbtide(err error) bool {
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return kind.GroupKind.Group == v1alpha1.SchemeGroupVersion.Group
	}
	var resource *meta.NoResourceMatchError
	return errors.As(err, &resource) && resource.PartialResource.Group == v1alpha1.SchemeGroupVersion.Group
}

// missing returns the error of a cluster without Ebbtide.
func (c *connection) missing() error {
	return fmt.Errorf("Ebbtide is not installed in this cluster, or is too old (%s is not served). Install it with\n  %s\n"+
		"or choose another cluster with --context", v1alpha1.SchemeGroupVersion.Group,
		command.Of("helm upgrade --install ebbtide charts/ebbtide --namespace %s --create-namespace --set image.repository=REGISTRY/ebbtide --wait", usualNamespace))
}

// unknownUser returns the error of rejected credentials.
func (c *connection) unknownUser(err error) error {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message
	}
	return fmt.Errorf("the cluster rejects your credentials: %s. Log in again, or check the user with\n  %s",
		excerpt.Line(text, maxSaid), c.viewConfig())
}

// forbidden names the missing right. Refusals for other reasons, such as by a webhook, are unchanged.
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
	return fmt.Errorf("%syou may not %s %s%s %s (user %q). Ask an administrator for this verb, and check it with\n  %s",
		before(err, right.Verb+" "+right.Resource), right.Verb, resource, sub, where, right.User,
		command.Of("kubectl auth can-i %s %s%s", right.Verb, resource, flags))
}

// before returns the text of a verb before that of the API server, without the action: the error names
// it anyway.
func before(err error, tried string) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	words, _, _ := strings.Cut(err.Error(), status.Status().Message)
	return strings.TrimSuffix(words, tried+": ")
}

// isOurs reports whether a webhook is one of Ebbtide's.
func isOurs(webhook string) bool {
	return strings.HasSuffix(webhook, "."+v1alpha1.SchemeGroupVersion.Group)
}

// noManager returns the error of requests that no manager checks.
func (c *connection) noManager(err error) error {
	return fmt.Errorf("no manager of Ebbtide is running to check the request: %s. Check it with\n  %s",
		excerpt.Line(err.Error(), maxSaid), c.kubectl("get pods -n %s", usualNamespace))
}
