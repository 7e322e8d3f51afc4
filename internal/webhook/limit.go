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
	// requestsAtOnce bounds how many requests are worked on at the same time, and
	// waitForTurn how long another one waits for its turn.
	requestsAtOnce, waitForTurn = 256, 2 * time.Second
	// longestUserName and largestUser bound, in bytes, the name of who asks, and all that
	// is said of them: it goes into reviews that we write, and into messages.
	longestUserName, largestUser = 1024, 256 << 10
	// writesPerSecond and writesAtOnce bound what is written for those who ask.
	writesPerSecond, writesAtOnce = 100, 1000
	// answerWithin is how long an answer may take: no API server waits longer for it.
	answerWithin = 10 * time.Second
)

// turns lets so many requests in at the same time as it has room for.
type turns chan struct{}

// of is the handler of a path with turns. Who gets none in time is told to come again.
// Whom it has begun to answer it answers, also when the manager is to end: a look at the
// API server that is broken off would be a refusal.
func (t turns) of(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		timeout := time.NewTimer(waitForTurn)
		defer timeout.Stop()
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), answerWithin)
			defer cancel()
			handler.ServeHTTP(w, request.WithContext(ctx))
		case <-timeout.C:
			http.Error(w, fmt.Sprintf("%d admission requests are being answered already, try again", cap(t)), http.StatusTooManyRequests)
		}
	})
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
