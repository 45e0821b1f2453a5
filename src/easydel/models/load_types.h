// What settings for dtypes and devices mean for tensors.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "easydel/models/load_config.h"

namespace easydel::models {

// `automatic` if that is the setting. UserError "where: ..." for formats that no tensor has (mxfp4, mxfp8, nvfp8).
at::ScalarType scalar_type_of(DTypeSetting setting, at::ScalarType automatic, const std::string& where);

// UserError "where: ..." if a GPU is asked for and torch finds none.
at::Device device_of(DeviceSetting setting, const std::string& where);

}  // namespace easydel::models
