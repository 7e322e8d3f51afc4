package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// smallReview is the size of the largest small review, in bytes, and smallAtOnce bounds the
	// concurrent ones.
	smallReview, smallAtOnce = 32 << 10, 1024
	// largestReview is the size of the smallest rejected review, in bytes, and largeAtOnce bounds
	// the total size of concurrent large ones.
	largestReview, largeAtOnce = 7 << 20, 16 << 20
)

// reviewMemory bounds the memory of reviews, separately for small and large ones.
type reviewMemory struct{ small, large *semaphore.Weighted }

func newReviewMemory() *reviewMemory {
	return &reviewMemory{semaphore.NewWeighted(smallAtOnce), semaphore.NewWeighted(largeAtOnce)}
}

// take returns a function that frees the memory of a review of this size; nil if none is left. It
// does not wait, as an unread review blocks the others on its connection.
func (r *reviewMemory) take(size int64) (done func()) {
	of, weight := r.small, int64(1)
	if size > smallReview {
		of, weight = r.large, size
	}
	if !of.TryAcquire(weight) {
		return nil
	}
	return func() { of.Release(weight) }
}

// reviewLimit rejects reviews for which there is no memory. Without a response, the API server would
// admit an eviction.
type reviewLimit struct {
	http.Handler
	memory *reviewMemory
	refuse refusal
}

// ServeHTTP implements http.Handler.
func (l reviewLimit) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	// API servers always send the length.
	if size := request.ContentLength; size < 0 || size >= largestReview {
		l.reject(w, request, fmt.Sprintf("the admission review is larger than the supported %d MiB", largestReview>>20))
		return
	}
	done := l.memory.take(request.ContentLength)
	if done == nil {
		l.reject(w, request, "too many concurrent admission reviews, try again")
		return
	}
	defer done()
	l.Handler.ServeHTTP(w, request)
}

func (l reviewLimit) reject(w http.ResponseWriter, request *http.Request, why string) {
	answer := l.refuse(why)
	answer.UID = uidOf(request.Body)
	review := admissionv1.AdmissionReview{Response: &answer.AdmissionResponse}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	// An error means that the caller has gone.
	_ = json.NewEncoder(w).Encode(review)
}

// uidOf reads the UID of a review from its first bytes, where API servers write it; empty if missing.
func uidOf(review io.Reader) types.UID {
	tokens := json.NewDecoder(io.LimitReader(review, 4<<10))
	for {
		token, err := tokens.Token()
		if err != nil {
			return ""
		}
		if token == "uid" {
			uid, _ := tokens.Token()
			text, _ := uid.(string)
			return types.UID(text)
		}
	}
}
