/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recorded.h - what the model holds, as a recording has it (recording.h), for whoever writes it by
 * the description in fields.h. The structs borrow texts and lists from the model.
 */
#ifndef QPROF_RECORDED_H
#define QPROF_RECORDED_H

#include "format/recording.h"
#include "format/run_info.h"

struct recording_run recorded_run(const struct run_info *info);
struct recording_step recorded_step(const struct profile_checkpoint *step);
/* gpus may be NULL. */
struct recording_totals recorded_totals(const struct profile_totals *totals,
					const struct run_gpus *gpus);
struct recording_phase recorded_phase(const struct profile *p, const struct profile_phase *phase);
struct recording_phase recorded_outside(const struct profile *p,
					const struct profile_outside *part);
/* Its times are since start_ns. */
struct recording_process recorded_process(const struct profile_process *process, uint64_t start_ns);
struct recording_point recorded_point(const struct profile *p, const struct profile_point *point);
struct recording_track_point recorded_track_point(const struct profile *p,
						  const struct profile_process_point *point);
struct recording_usage_point recorded_usage_point(const struct profile *p,
						  const struct profile_usage_point *point);
struct recording_gpu_point recorded_gpu_point(const struct profile *p,
					      const struct profile_gpu_point *point);
/* The first PROFILE_MAX_SHARES of the shares go into `shares`. has is 0 if there was no point. */
struct recording_peak recorded_peak(const struct profile *p,
				    struct recording_share shares[PROFILE_MAX_SHARES]);
struct recording_shared recorded_shared(const struct profile_totals *totals);
/*
 * Fills in what a summary asks for: the totals, when the peak was, all phases with their names, and
 * processes. r is zeros but for its arena. Returns 0 or -ENOMEM; recording_free() must follow.
 */
int recorded_profile(struct recording *r, const struct profile *p, const struct run_info *info);

/* Finds what grows from one repeat of a phase to the next; the list and its texts are the arena's.
 * Returns 0 or -ENOMEM. */
int recorded_trends(const struct profile *p, const struct run_info *info, struct arena *arena,
		    struct recording_trend **list, size_t *n);
/* Whose `has` is 0 if it is not known. */
struct recording_closest recorded_closest(const struct profile *p, const struct run_info *info);
struct recording_cpu_limit recorded_cpu_limit(const struct run_info *info);
/* gpus may be NULL. The lists are the arena's, texts of the first the profile's. Each returns 0 or
 * -ENOMEM. */
int recorded_gpus(const struct profile *p, const struct run_gpus *gpus, struct arena *arena,
		  struct recording_gpu **list, size_t *n);
int recorded_gpu_refusal(const struct profile *p, const struct profile_gpu_refusal *refusal,
			 struct arena *arena, struct recording_gpu_refusal *to);
int recorded_gpu_refusals(const struct profile *p, struct arena *arena,
			  struct recording_gpu_refusal **list, size_t *n);
/* `uses` has room for PROFILE_MAX_FILE_USES, `points` for PROFILE_MAX_FILE_POINTS. */
struct recording_file recorded_file(const struct profile *p, const struct profile_file *file,
				    struct recording_file_use *uses,
				    struct recording_file_point *points);
/* `uses` has room for PROFILE_MAX_DEVICE_USES. */
struct recording_device recorded_device(const struct profile_device *device,
					struct recording_device_use *uses);
struct recording_space recorded_space(const struct profile *p, const struct profile_space *space);
/* The texts are the profile's. Returns 0 or -ENOMEM. */
int recorded_death(const struct profile *p, const struct profile_death *death, struct arena *arena,
		   struct recording_death *into);

#endif
