package outbox

// LaneOf returns the lane of an aggregate.
func LaneOf(topic, aggregate string) int { return laneOf(topic, aggregate) }
