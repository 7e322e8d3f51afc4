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
	// smallReview is the size up to which a review needs no room among the large ones, in
	// bytes, and smallAtOnce how many of these there may be. API servers call no more at a
	// time than they answer requests.
	smallReview, smallAtOnce = 32 << 10, 1024
	// largestReview is the size, in bytes, from which a review is not read, and
	// largeAtOnce the size of all large ones at a time.
	largestReview, largeAtOnce = 7 << 20, 16 << 20
)

// room is what reviews may take of memory. Large ones take none from small ones.
type room struct{ small, large *semaphore.Weighted }

func newRoom() *room {
	return &room{semaphore.NewWeighted(smallAtOnce), semaphore.NewWeighted(largeAtOnce)}
}

// take returns what gives room back for a review of this size; nil if there is none. Nobody
// waits for it: what has been sent of a review and is not read keeps others from being
// sent, which come over the same connection.
func (r *room) take(size int64) (done func()) {
	of, weight := r.small, int64(1)
	if size > smallReview {
		of, weight = r.large, size
	}
	if !of.TryAcquire(weight) {
		return nil
	}
	return func() { of.Release(weight) }
}

// door lets in the reviews for which there is room. Any other gets an answer, too, by its
// UID: an API server that gets none admits an eviction.
type door struct {
	http.Handler
	room   *room
	refuse refusal
}

// ServeHTTP is an http.Handler.
func (d door) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	// API servers say how large a review is.
	if size := request.ContentLength; size < 0 || size >= largestReview {
		d.turnAway(w, request, fmt.Sprintf("the admission review is larger than %d MiB, and Ebbtide does not read it", largestReview>>20))
		return
	}
	done := d.room.take(request.ContentLength)
	if done == nil {
		d.turnAway(w, request, "too many admission reviews are being read already, try again")
		return
	}
	defer done()
	d.Handler.ServeHTTP(w, request)
}

func (d door) turnAway(w http.ResponseWriter, request *http.Request, why string) {
	answer := d.refuse(why)
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
