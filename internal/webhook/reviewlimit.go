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
	// smallReview is the size of the largest small review, in bytes, and smallAtOnce the
	// number of small reviews at a time. API servers call no more at a time than they answer
	// requests.
	smallReview, smallAtOnce = 32 << 10, 1024
	// largestReview is the size, in bytes, from which a review is not read, and
	// largeAtOnce the size of all large ones at a time.
	largestReview, largeAtOnce = 7 << 20, 16 << 20
)

// reviewMemory bounds the memory that reviews take. Large ones take none from small ones.
type reviewMemory struct{ small, large *semaphore.Weighted }

func newReviewMemory() *reviewMemory {
	return &reviewMemory{semaphore.NewWeighted(smallAtOnce), semaphore.NewWeighted(largeAtOnce)}
}

// take returns a function that frees the memory of a review of this size; nil if there is
// none left. It does not wait: a review that is not read blocks the others on its connection.
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

// reviewLimit handles the reviews for which there is memory and rejects the others. An API
// server that gets no answer admits an eviction.
type reviewLimit struct {
	http.Handler
	memory *reviewMemory
	refuse refusal
}

// ServeHTTP is an http.Handler.
func (l reviewLimit) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	// API servers say how large a review is.
	if size := request.ContentLength; size < 0 || size >= largestReview {
		l.reject(w, request, fmt.Sprintf("the admission review is larger than %d MiB, and Ebbtide does not read it", largestReview>>20))
		return
	}
	done := l.memory.take(request.ContentLength)
	if done == nil {
		l.reject(w, request, "too many admission reviews are being read already, try again")
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
	// Who does not read the answer has gone.
	_ = json.NewEncoder(w).Encode(review)
}

// uidOf reads the UID of a review from its first bytes, where API servers write it; it is
// empty if it is not there.
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
