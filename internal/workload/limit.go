package workload

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultRemoteMemory is how many bytes of memory one remote cluster may take if
	// nothing else is said: enough for 100,000 pods.
	DefaultRemoteMemory = 256 << 20
	// DefaultRemotesMemory is how many all of them may take together: one of the largest
	// that is being read, which takes the most, or a few hundred of a thousand pods.
	DefaultRemotesMemory = 1 << 30
)

const (
	// objectBytes is the least that an object counts in a cache: its maps, its
	// place in the indexes.
	objectBytes = 2 << 10
	// namespaceShare is how many Clusters of a namespace may take all that one may.
	namespaceShare = 4
	// littleShare is the part of all memory that clusters may take together without waiting
	// for others, a sixteenth, each an equal part of it.
	littleShare = 16
	// copies is how often the bytes of a message are in memory while it is decoded: as
	// they came, as the client reads them, as its decoder does, and what is left over of
	// buffers that grew.
	copies = 4
)

// limits are what one cluster may cost. All Clusters of a namespace may together
// cost namespaceShare times as much.
type limits struct {
	// response is how many bytes a response may have, object those of one object.
	// A response with an error has errorText, anything else of it is not read.
	response, object, errorText int64
	// weight is how many bytes of memory may become of a response.
	weight int64
	// page is how many objects one page is asked for, pages how many pages there
	// may be in a list.
	page, pages int64
	// headers is how many bytes the headers of a response may have.
	headers int64
	// time is how long a request may take, and one event of a watch.
	time time.Duration
	// events is how many events a second a watch may have; more wait. An event counts
	// as one for each eventBytes.
	events float32
	// of are the limits of what is in use at a time.
	of amounts
	// total is how many bytes all clusters may have in use at a time.
	total int64
}

const eventBytes = 16 << 10

// amounts are what is in use at a time.
type amounts [6]int64

// bytes are those of memory among them.
func (a *amounts) bytes() int64 { return a.steady() + a[transit] + a[decoded] }

// steady are the bytes that do not go by themselves within a moment.
func (a *amounts) steady() int64 { return a[stored] + a[listed] }

// What is counted of a cluster.
const (
	// objects are in its caches, and so are stored bytes.
	objects = iota
	stored
	// transit are bytes of messages that are being read.
	transit
	// decoded are those of messages that are complete, and of what becomes of them, until
	// it is in a cache or dropped.
	decoded
	// listed are bytes of the lists of which caches have not got all pages yet.
	listed
	// connections are those of its network.
	connections
)

// limitsFor are those for a cluster that may take so many bytes of memory.
func limitsFor(memory int64) limits {
	memory = cmp.Or(memory, DefaultRemoteMemory)
	return limits{
		response: 8 << 20, object: 4 << 20, errorText: 64 << 10, weight: 32 << 20,
		page: 100, pages: memory / objectBytes / 50, headers: 64 << 10,
		time: requestTimeout, events: 5000,
		of: amounts{
			objects: memory / objectBytes, stored: memory, transit: memory / 2, decoded: memory / 2, listed: 2 * memory, connections: 32,
		},
		total: DefaultRemotesMemory,
	}
}

// breach is a bound that a cluster has exceeded: no more is read of it.
type breach struct{ text string }

func (b *breach) Error() string { return b.text }

func breaks(format string, values ...any) error { return &breach{fmt.Sprintf(format, values...)} }

// breachIn is the breach that an error comes of; nil if there is none.
func breachIn(err error) *breach {
	var found *breach
	errors.As(err, &found)
	return found
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// describe says what a bound is about.
func (l *limits) describe(what int, times int64) string {
	switch bound := l.of[what] * times; what {
	case objects:
		return fmt.Sprintf("more than %d objects", bound)
	case stored:
		return "objects of more than " + size(bound)
	case transit:
		return "responses of more than " + size(bound) + " at a time"
	case decoded:
		return "responses that take more than " + size(bound) + " of memory at a time"
	case listed:
		return "lists that take more than " + size(bound) + " of memory"
	default:
		return fmt.Sprintf("more than %d network connections at a time", bound)
	}
}
