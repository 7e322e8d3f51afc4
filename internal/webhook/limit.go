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
	// requestsAtOnce bounds how many requests for a path are worked on at the same time, and
	// namespaceAtOnce how many for the same namespace. What one path writes may be asked of
	// another one.
	requestsAtOnce, namespaceAtOnce = 64, 16
	// readsAtOnce bounds how many namespaces are read at the same time for their locks.
	readsAtOnce = 4
	// largestAnswer bounds, in bytes, what is read of an answer of the API server: of
	// ordinary budgets, several thousand.
	largestAnswer = 8 << 20
	// longestUserName and largestUser bound, in bytes, the name of who asks, and all that
	// is said of them: it goes into reviews that we write, and into messages.
	longestUserName, largestUser = 1024, 256 << 10
	// writesPerSecond and writesAtOnce bound what is written for those who ask.
	writesPerSecond, writesAtOnce = 100, 1000
	// longestAnswer is how long an answer may take: no API server waits longer for it.
	longestAnswer = 10 * time.Second
)

// answerWithin returns how long a request may take: three quarters of what its caller says
// that it waits, so that the caller still hears why there is no better answer. Of an
// eviction it would take silence for a yes.
func answerWithin(request *http.Request) time.Duration {
	waits, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || waits <= 0 {
		waits = longestAnswer
	}
	return min(waits, longestAnswer) * 3 / 4
}

// limited answers a request as soon as the limit of its namespace allows, and with refuse if
// that takes too long.
type limited struct {
	admission.Handler
	limit  *namespaceLimit
	refuse refusal
}

// refusal answers what cannot be looked at, and says why.
type refusal func(why string) admission.Response

// Handle is an admission.Handler.
func (l limited) Handle(ctx context.Context, request admission.Request) admission.Response {
	done, err := l.limit.take(ctx, request.Namespace)
	if err != nil {
		return l.refuse("too many admission requests are being answered already, try again")
	}
	defer done()
	return l.Handler.Handle(ctx, request)
}

// bounded answers nobody of whom too much is said.
type bounded struct{ admission.Handler }

// Handle is an admission.Handler.
func (b bounded) Handle(ctx context.Context, request admission.Request) admission.Response {
	if size := len(request.UserInfo.Username); size > longestUserName {
		return admission.Errored(http.StatusRequestEntityTooLarge,
			fmt.Errorf("the user name has %d bytes, and Ebbtide answers users with names of at most %d", size, longestUserName))
	}
	if size := sizeOf(request.UserInfo); size > largestUser {
		return admission.Errored(http.StatusRequestEntityTooLarge,
			fmt.Errorf("groups and extra fields of user %q have %d bytes, and Ebbtide reviews at most %d", request.UserInfo.Username, size, largestUser))
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
