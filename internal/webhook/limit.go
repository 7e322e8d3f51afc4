package webhook

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// requestsAtOnce bounds the concurrent requests of a path, and namespaceAtOnce those of a
	// namespace. A request of one path may cause one of another path.
	requestsAtOnce, namespaceAtOnce = 64, 16
	// readsAtOnce bounds the namespaces whose locks are read concurrently.
	readsAtOnce = 4
	// largestAnswer bounds a response of the API server, in bytes: several thousand ordinary budgets.
	largestAnswer = 8 << 20
	// longestUserName and largestUser bound the name and the other data of a user, in bytes, which
	// go into reviews and messages.
	longestUserName, largestUser = 1024, 256 << 10
	// writesPerSecond and writesAtOnce bound the writes for callers.
	writesPerSecond, writesAtOnce = 100, 1000
	// longestAnswer is the longest timeout of a webhook.
	longestAnswer = 10 * time.Second
)

// answerWithin returns three quarters of the caller's timeout, so that the caller still receives a
// refusal: it admits an eviction after a timeout.
func answerWithin(request *http.Request) time.Duration {
	waits, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || waits <= 0 {
		waits = longestAnswer
	}
	return min(waits, longestAnswer) * 3 / 4
}

// limited handles a request as soon as the limit allows, and refuses it after the timeout.
type limited struct {
	admission.Handler
	limit  *namespaceLimit
	refuse refusal
}

// refusal is the response to a request that cannot be handled.
type refusal func(why string) admission.Response

// Handle implements admission.Handler.
func (l limited) Handle(ctx context.Context, request admission.Request) admission.Response {
	done, err := l.limit.take(ctx, request.Namespace)
	if err != nil {
		return l.refuse("too many concurrent admission requests, try again")
	}
	defer done()
	return l.Handler.Handle(ctx, request)
}

// bounded rejects users with too much data.
type bounded struct{ admission.Handler }

// Handle implements admission.Handler.
func (b bounded) Handle(ctx context.Context, request admission.Request) admission.Response {
	if size := len(request.UserInfo.Username); size > longestUserName {
		return admission.Errored(http.StatusRequestEntityTooLarge,
			fmt.Errorf("the user name has %d bytes, more than the supported %d", size, longestUserName))
	}
	if size := sizeOf(request.UserInfo); size > largestUser {
		return admission.Errored(http.StatusRequestEntityTooLarge,
			fmt.Errorf("groups and extra fields of user %q have %d bytes, more than the supported %d", request.UserInfo.Username, size, largestUser))
	}
	return b.Handler.Handle(ctx, request)
}

func sizeOf(user authenticationv1.UserInfo) int {
	size := len(user.UID)
	for _, group := range user.Groups {
		size += len(group)
	}
	for key, values := range user.Extra {
		size += len(key)
		for _, value := range values {
			size += len(value)
		}
	}
	return size
}
