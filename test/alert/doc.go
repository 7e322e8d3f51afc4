// Package alert holds the alerts of the chart to what they promise, by the rule engine of
// Prometheus: promtool is a tool of the module in the folder of that name, which nothing
// else depends on.
package alert
