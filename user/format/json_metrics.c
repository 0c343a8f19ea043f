/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/json_metrics.h"

void json_metric_value(struct json_writer *j, const struct profile_metric *metric)
{
	switch (metric->kind) {
	case PROFILE_INT:
		json_i64(j, metric->i);
		break;
	case PROFILE_UINT:
		json_u64(j, metric->u);
		break;
	case PROFILE_DOUBLE:
		json_double(j, metric->d);
		break;
	case PROFILE_UNREADABLE:
		json_plain(j, "null");
		break;
	}
}

void json_metrics(struct json_writer *j, const struct profile_metric *metrics, size_t n)
{
	json_compact(j);
	json_object(j);
	for (size_t i = 0; i < n; i++) {
		json_key(j, metrics[i].name);
		json_metric_value(j, &metrics[i]);
	}
	json_object_end(j);
}
