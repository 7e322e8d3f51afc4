// Package alert holds the alerts of the chart, and the gates of rollouts, to what they promise, by
// Prometheus itself: it is a tool of the module in the folder promtool, which nothing else depends
// on.
package alert
