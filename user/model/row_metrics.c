/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/row_metrics.h"
#include "base/units.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the double that is written as the float is: 0.1 for 0.1f, not 0.10000000149011612. */
static double double_of_float(uint32_t bits)
{
	char text[UNITS_TEXT_MAX];
	float value;

	memcpy(&value, &bits, sizeof(value));
	if (!isfinite(value))
		return value;
	for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtof(text, NULL) == value)
			break;
	}
	return strtod(text, NULL);
}

struct profile_metric metric_from_wire(const struct wire_checkpoint *cp)
{
	struct profile_metric metric = {0};

	switch ((enum wire_value)cp->value_state) {
	case WIRE_VALUE_INT:
		metric.kind = PROFILE_INT;
		metric.i = (int64_t)cp->value;
		break;
	case WIRE_VALUE_UINT:
		metric.kind = PROFILE_UINT;
		metric.u = cp->value;
		break;
	case WIRE_VALUE_DOUBLE:
		metric.kind = PROFILE_DOUBLE;
		memcpy(&metric.d, &cp->value, sizeof(metric.d));
		break;
	case WIRE_VALUE_FLOAT:
		metric.kind = PROFILE_DOUBLE;
		metric.d = double_of_float((uint32_t)cp->value);
		break;
	case WIRE_VALUE_NONE:
	case WIRE_VALUE_PHASE:
	case WIRE_VALUE_UNREADABLE:
		metric.kind = PROFILE_UNREADABLE;
		break;
	}
	return metric;
}

/* Returns where a metric of that name waits already, else a new place, or NULL if all are taken. */
static struct profile_metric *find_place(struct row_metrics *metrics, const char *name)
{
	char *copy;

	for (size_t i = 0; i < metrics->n; i++) {
		if (!strcmp(metrics->list[i].name, name))
			return &metrics->list[i];
	}
	if (metrics->n == PROFILE_MAX_METRICS)
		return NULL;
	copy = metrics->names[metrics->n];
	snprintf(copy, NAME_TEXT_MAX, "%s", name);
	metrics->list[metrics->n].name = copy;
	return &metrics->list[metrics->n++];
}

bool row_metrics_add(struct row_metrics *metrics, const char *name,
		     const struct profile_metric *value)
{
	struct profile_metric *place = find_place(metrics, name);

	if (!place)
		return false;
	name = place->name;
	*place = *value;
	place->name = name;
	return true;
}

void row_metrics_drop_joined(struct row_metrics *metrics)
{
	if (!metrics || !metrics->joined)
		return;
	metrics->n = 0;
	metrics->joined = false;
}
