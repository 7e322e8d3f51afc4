package cli

import "time"

const (
	// connectWithin bounds the connection to a cluster, and answerWithin a request unless
	// --request-timeout is set. An API server may wait ten seconds for a webhook.
	connectWithin = 5 * time.Second
	answerWithin  = 20 * time.Second
	// suggestWithin bounds the completion of a word.
	suggestWithin = 3 * time.Second
)
