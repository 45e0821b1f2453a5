# The chat page is a string of the program: server/chat_page.cpp includes it as chat_page_html.h from the folder that
# `folder` is set to.
function(easydel_chat_page folder)
  set(page ${PROJECT_SOURCE_DIR}/src/easydel/server/page/chat.html)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} chat_page)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pages/chat_page_html.h @ONLY
    CONTENT "constexpr std::string_view chat_page_html = R\"~~~~(@chat_page@)~~~~\";\n")
  set(${folder} ${CMAKE_BINARY_DIR}/pages PARENT_SCOPE)
endfunction()
