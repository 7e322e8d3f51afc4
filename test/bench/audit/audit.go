// Package audit reads what the benchmark needs from the API server's audit log:
// who wrote what, and how soon an eviction followed a budget that opened. The
// log is the API server's own account, so no contender can look better in it
// than it was. Requests are told apart by user agent, because all contenders
// use the same credentials.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Event is one line of the audit log, cut down to what is read here.
type Event struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	Object    struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// Request is what was sent; only recorded for the states of budgets.
	Request struct {
		Status struct {
			DisruptionsAllowed int `json:"disruptionsAllowed"`
		} `json:"status"`
	} `json:"requestObject"`
	// Received is when the request reached the API server.
	Received time.Time `json:"requestReceivedTimestamp"`
	// Answered is when the API server had dealt with it.
	Answered time.Time `json:"stageTimestamp"`
}

// Agent is the program that sent the request.
func (e Event) Agent() string {
	program, _, _ := strings.Cut(e.UserAgent, "/")
	return program
}

func (e Event) what() string {
	if e.Object.Subresource == "" {
		return e.Verb + " " + e.Object.Resource
	}
	return e.Verb + " " + e.Object.Resource + "/" + e.Object.Subresource
}

// Log is an audit log that is still being written, and rotated when it is long.
type Log struct {
	path string
	file *os.File
	// rest is a line that is not complete yet.
	rest []byte
}

// Open returns the log at path, read up to its present end.
func Open(path string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("find audit log: %w", err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("skip audit log: %w", err), file.Close())
	}
	return &Log{path: path, file: file}, nil
}

// Next returns the finished requests that were logged since the last call. A
// line that is not complete yet is left for the next one. The log may have been
// rotated once since then.
func (l *Log) Next() ([]Event, error) {
	// Opened before the old one is read: if it is another, the old one is complete.
	current, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	text, readErr := l.read(l.rest)
	same, sameErr := sameFile(l.file, current)
	if err := errors.Join(readErr, sameErr); err != nil {
		return nil, errors.Join(err, current.Close())
	}
	if same {
		return l.take(text, current.Close())
	}
	err = l.file.Close()
	l.file = current
	if err != nil {
		return nil, fmt.Errorf("close rotated audit log: %w", err)
	}
	return l.take(l.read(text))
}

// Close ends the reading.
func (l *Log) Close() error { return l.file.Close() }

// read appends what the file has that was not read.
func (l *Log) read(text []byte) ([]byte, error) {
	more, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return append(text, more...), nil
}

// take returns the events of the complete lines and keeps the rest.
func (l *Log) take(text []byte, err error) ([]Event, error) {
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	l.rest = bytes.Clone(text[end:])
	return parse(text[:end])
}

func sameFile(a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return false, fmt.Errorf("compare audit logs: %w", err)
	}
	return os.SameFile(infoA, infoB), nil
}

func parse(text []byte) ([]Event, error) {
	var events []Event
	for line := range bytes.Lines(text) {
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("parse audit log: %w", err)
		}
		if event.Stage == "ResponseComplete" {
			events = append(events, event)
		}
	}
	return events, nil
}

// Writes counts the writes of agent by what they wrote, such as "create
// pods/eviction". Refused ones count: the API server had the work. Leases do
// not: they are written by the clock and not by the pod.
func Writes(events []Event, agent string) map[string]int {
	counts := map[string]int{}
	for _, event := range events {
		if event.Agent() == agent && event.Object.Resource != "leases" && isWrite(event.Verb) {
			counts[event.what()]++
		}
	}
	return counts
}

// First is when the first request of agent that did what, such as "create
// evacuations", and was granted reached the API server; zero if there was none.
func First(events []Event, agent, what string) time.Time {
	var first time.Time
	for _, event := range events {
		granted := event.Agent() == agent && event.what() == what && event.Response.Code < 300
		if granted && (first.IsZero() || event.Received.Before(first)) {
			first = event.Received
		}
	}
	return first
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Reactions returns, for each time that the budget in namespace opened, how long
// it took until the eviction by agent that the API server granted: from one
// request's arrival to the other's, so that the API server's own share in opening
// the budget counts against agent. An eviction that was already under way took
// no time at all. An opening that nobody used is left out. The API server closes
// the budget in the name of an eviction before it grants it.
func Reactions(events []Event, namespace, agent string) []time.Duration {
	var (
		reactions []time.Duration
		// open is what the budget's state said last; unused, that its last
		// opening was not used yet.
		open, unused bool
		opened       time.Time
	)
	for _, event := range events {
		if event.Object.Namespace != namespace || event.Response.Code >= 300 {
			continue
		}
		switch event.what() {
		case "update poddisruptionbudgets/status":
			allows := event.Request.Status.DisruptionsAllowed > 0
			if allows && !open {
				unused, opened = true, event.Received
			}
			open = allows
		case "create pods/eviction":
			if unused && event.Agent() == agent {
				reactions = append(reactions, max(0, event.Received.Sub(opened)))
				unused = false
			}
		}
	}
	return reactions
}
