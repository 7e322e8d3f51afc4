// Package machine carries out what core/lifecycle decides for a Machine: it creates it, drains
// its Node, waits for its volumes, and deletes its infrastructure, bootstrap config and Node. A
// pass observes, decides, records, acts and reports; after a record the next pass follows. A
// refused write is reported and retried. Only the API server's own answer, not a cache, says
// that something is gone.
package machine
