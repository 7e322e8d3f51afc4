// Package maintenance decides, over all NodeMaintenances at once, what happens
// to every node under maintenance and what every status says.
package maintenance
