package workload

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Place is a node of a cluster, by Identity. Node is empty if it is unknown.
type Place struct {
	Cluster types.NamespacedName
	Node    string
}

// WatchIndex maps users of clusters, with a value each, to the node that they watch, and back: a
// change of a pod wakes only the users of its node. It is safe for concurrent use.
type WatchIndex[K comparable, V any] struct {
	mu      sync.Mutex
	watched map[K]watched[V]
	users   map[Place]sets.Set[K]
}

type watched[V any] struct {
	Place
	value V
}

// NewWatchIndex returns an empty WatchIndex.
func NewWatchIndex[K comparable, V any]() *WatchIndex[K, V] {
	return &WatchIndex[K, V]{watched: map[K]watched[V]{}, users: map[Place]sets.Set[K]{}}
}

// Watch sets what a user watches, and returns what it watched before. Call it before reading, so
// that later events find the user.
func (w *WatchIndex[K, V]) Watch(user K, at Place, value V) (before Place, was V, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, was, known = w.remove(user)
	w.watched[user] = watched[V]{at, value}
	if at.Node == "" {
		return before, was, known
	}
	if w.users[at] == nil {
		w.users[at] = sets.New[K]()
	}
	w.users[at].Insert(user)
	return before, was, known
}

// Unwatch forgets a user, and returns what it watched.
func (w *WatchIndex[K, V]) Unwatch(user K) (before Place, was V, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remove(user)
}

func (w *WatchIndex[K, V]) remove(user K) (before Place, was V, known bool) {
	one, known := w.watched[user]
	if known {
		delete(w.watched, user)
		if w.users[one.Place].Delete(user); w.users[one.Place].Len() == 0 {
			delete(w.users, one.Place)
		}
	}
	return one.Place, one.value, known
}

// Of returns what a user watches.
func (w *WatchIndex[K, V]) Of(user K) (at Place, value V, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, known := w.watched[user]
	return one.Place, one.value, known
}

// Users returns the users that watch a node.
func (w *WatchIndex[K, V]) Users(at Place) []K {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.users[at].UnsortedList()
}

// Where returns the users that match. Match must not call the index.
func (w *WatchIndex[K, V]) Where(match func(user K, at Place, value V) bool) (found []K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user, one := range w.watched {
		if match(user, one.Place, one.value) {
			found = append(found, user)
		}
	}
	return found
}
