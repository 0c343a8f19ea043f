/* SPDX-License-Identifier: GPL-2.0-only */
/* What was read and written of a file, file systems, and disks, as a profile has them. */
#include "format/fields.h"
#include "format/recorded.h"

static struct recording_file_use recorded_use(const struct profile_file_use *use, bool has_called)
{
	struct recording_file_use recorded = {
		.has = field_all(&record_file_use),
		.name = (char *)use->name,
		.read = use->read,
		.written = use->written,
		.called = use->called,
		.mapped = use->mapped,
		.mapped_late = use->mapped_late,
		.copied = use->copied,
		.copied_late = use->copied_late,
	};

	field_put(&record_file_use, &recorded, "call_read_mb", has_called);
	field_put(&record_file_use, &recorded, "mapped_mb", use->has_mapped);
	field_put(&record_file_use, &recorded, "mapped_late_secs", use->has_mapped);
	field_put(&record_file_use, &recorded, "copied_mb", use->has_copied);
	field_put(&record_file_use, &recorded, "copied_late_secs", use->has_copied);
	return recorded;
}

static struct recording_file_point recorded_file_point(const struct profile *p,
						       const struct profile_file_point *point,
						       bool has_called)
{
	struct recording_file_point recorded = {
		.has = field_all(&record_file_point),
		.time_ns = profile_rel_ns(p, point->time_ns),
		.read = point->read,
		.written = point->written,
		.called = point->called,
	};

	field_put(&record_file_point, &recorded, "call_read_mb", has_called);
	return recorded;
}

struct recording_file recorded_file(const struct profile *p, const struct profile_file *file,
				    struct recording_file_use *uses,
				    struct recording_file_point *points)
{
	const bool known = file->has_distinct && file->distinct;
	struct recording_file recorded = {
		.has = field_all(&record_file),
		.path = (char *)file->path,
		.is_rest = file->is_rest,
		.is_deleted = file->is_deleted,
		.size = file->size,
		.read = file->read,
		.written = file->written,
		.called = file->called,
		.distinct = file->distinct,
		.mapped = file->mapped,
		.copied = file->copied,
		.reread = known ? (double)file->read / (double)file->distinct : 0,
		.uses = uses,
		.n_uses = file->n_uses,
		.points = points,
		.n_points = file->n_points,
	};

	for (size_t i = 0; i < file->n_points; i++)
		points[i] = recorded_file_point(p, &file->points[i], file->has_called);
	for (size_t i = 0; i < file->n_uses; i++)
		uses[i] = recorded_use(&file->uses[i], file->has_called);
	field_put(&record_file, &recorded, "no_file", file->is_rest);
	field_put(&record_file, &recorded, "deleted", file->is_deleted);
	field_put(&record_file, &recorded, "size_mb", !file->is_rest);
	field_put(&record_file, &recorded, "distinct_mb", file->has_distinct && file->read);
	/* Of what is smaller than a block, the block counts. */
	field_put(&record_file, &recorded, "reread_factor", known && recorded.reread >= 1);
	field_put(&record_file, &recorded, "call_read_mb", file->has_called);
	field_put(&record_file, &recorded, "mapped_mb", file->mapped);
	field_put(&record_file, &recorded, "copied_mb", file->copied);
	field_put(&record_file, &recorded, "phases", file->n_uses);
	field_put(&record_file, &recorded, "timeline", file->n_points);
	return recorded;
}

struct recording_space recorded_space(const struct profile *p, const struct profile_space *space)
{
	struct recording_space recorded = {
		.has = field_all(&record_space),
		.path = (char *)space->mount,
		.size = space->size,
		.first = space->first,
		.least = space->least,
		.least_ns = profile_rel_ns(p, space->least_ns),
		.phase = (char *)profile_phase_at(p, space->least_ns),
		.last = space->last,
		.looks = space->looks,
		.written = space->written,
		.removed = space->removed,
		.removed_file = (char *)space->removed_file,
		.removed_most = space->removed_most,
	};

	field_put(&record_space, &recorded, "least_left_phase", recorded.phase);
	field_put(&record_space, &recorded, "last_left_mb", space->has_last);
	field_put(&record_space, &recorded, "removed_file", space->removed_file);
	field_put(&record_space, &recorded, "removed_file_mb", space->removed_file);
	return recorded;
}

static struct recording_requests recorded_requests(const struct profile_requests *requests)
{
	return (struct recording_requests){
		.n = requests->n,
		.bytes = requests->bytes,
		.mean_ns = requests->timed ? requests->ns / requests->timed : 0,
		.p50_ns = requests->p50_ns,
		.p99_ns = requests->p99_ns,
		.max_ns = requests->max_ns,
	};
}

static struct recording_device_use recorded_device_use(const struct profile_device_use *use)
{
	struct recording_device_use recorded = {
		.has = field_all(&record_device_use),
		.name = (char *)use->name,
		.ns = use->ns,
		.busy_ns = use->busy_ns,
		.read = recorded_requests(&use->of[WIRE_DEVICE_READ]),
		.write = recorded_requests(&use->of[WIRE_DEVICE_WRITE]),
	};

	field_put(&record_device_use, &recorded, "read_mean_secs", use->of[WIRE_DEVICE_READ].timed);
	field_put(&record_device_use, &recorded, "write_mean_secs",
		  use->of[WIRE_DEVICE_WRITE].timed);
	return recorded;
}

struct recording_device recorded_device(const struct profile_device *device,
					struct recording_device_use *uses)
{
	static const char *const reads[] = {"read_mean_secs", "read_p50_secs", "read_p99_secs",
					    "read_max_secs"};
	static const char *const writes[] = {"write_mean_secs", "write_p50_secs", "write_p99_secs",
					     "write_max_secs"};
	struct recording_device recorded = {
		.has = field_all(&record_device),
		.name = (char *)device->name,
		.busy_ns = device->busy_ns,
		.open = device->open,
		.read = recorded_requests(&device->of[WIRE_DEVICE_READ]),
		.write = recorded_requests(&device->of[WIRE_DEVICE_WRITE]),
		.uses = uses,
		.n_uses = device->n_uses,
	};

	for (size_t i = 0; i < device->n_uses; i++)
		uses[i] = recorded_device_use(&device->uses[i]);
	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		field_put(&record_device, &recorded, reads[i], device->of[WIRE_DEVICE_READ].timed);
		field_put(&record_device, &recorded, writes[i],
			  device->of[WIRE_DEVICE_WRITE].timed);
	}
	field_put(&record_device, &recorded, "open_requests", recorded.open);
	field_put(&record_device, &recorded, "phases", recorded.n_uses);
	return recorded;
}
